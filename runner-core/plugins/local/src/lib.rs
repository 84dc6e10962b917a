//! A fleeting plugin whose instances are agent processes on this machine.
