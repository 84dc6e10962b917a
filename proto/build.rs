//! Compiles the `.proto` files without protoc: the messages, and the set of their descriptors for JSON, text format and reflection.

use prost::Message as _;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=step.proto");
    println!("cargo::rerun-if-changed=agent.proto");
    println!("cargo::rerun-if-changed=plan.proto");
    let set = protox::compile(["step.proto", "agent.proto", "plan.proto"], ["."])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), set.encode_to_vec())?;
    // Log bytes without a copy; maps in one order, so that the same thing is always written the same way.
    let mut config = tonic_prost_build::Config::new();
    config.bytes([".proto.FollowLogsResponse", ".step_runner.v1.ResultChunk"]).btree_map(["."]);
    // No transport: callers bring the byte stream.
    tonic_prost_build::configure().build_transport(false).compile_fds_with_config(set, config)?;
    Ok(())
}
