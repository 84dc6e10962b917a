//! Both sides of the plug: hosts fleeting plugins, and serves them.
