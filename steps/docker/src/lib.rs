//! `builtin://docker`: makes a container and hands steps over into it.
