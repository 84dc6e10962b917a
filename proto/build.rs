//! Compiles the `.proto` files without protoc: the messages, and the set of their descriptors for JSON, text format and reflection.

use prost::Message as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=step.proto");
    println!("cargo::rerun-if-changed=agent.proto");
    println!("cargo::rerun-if-changed=plan.proto");
    println!("cargo::rerun-if-changed=results.proto");
    println!("cargo::rerun-if-changed=fleeting.proto");
    println!("cargo::rerun-if-changed=go_plugin.proto");
    let set = protox::compile(["step.proto", "agent.proto", "plan.proto", "results.proto"], ["."])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), set.encode_to_vec())?;
    // Log bytes without a copy; maps in one order, so that the same thing is always written the same way.
    let mut config = tonic_prost_build::Config::new();
    config.bytes([".proto.FollowLogsResponse", ".step_runner.v1.ResultChunk", ".runner_core.results.v1"]).btree_map(["."]);
    // No transport: callers bring the byte stream.
    tonic_prost_build::configure().build_transport(false).compile_fds_with_config(set, config)?;
    fleeting(&out)
}

/// Plugins know another package `proto` than agents do: a set of its own, in a directory of its own.
fn fleeting(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let set = protox::compile(["fleeting.proto", "go_plugin.proto"], ["."])?;
    let out = out.join("fleeting");
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join("descriptors.bin"), set.encode_to_vec())?;
    let mut config = tonic_prost_build::Config::new();
    config.bytes([".plugin.StdioData"]);
    tonic_prost_build::configure().build_transport(false).out_dir(&out).compile_fds_with_config(set, config)?;
    Ok(())
}
