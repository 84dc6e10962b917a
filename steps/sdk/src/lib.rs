//! What a step that is a program needs: typed inputs, outputs, clean-up, and handing steps over into an environment.
