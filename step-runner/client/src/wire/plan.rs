//! Plans that travel: what a step hands over becomes the bytes of `RunRequest.plan`, and is read where it runs (proto/plan.proto).
//!
//! ```text
//! step_model::plan::Plan --encode--> bytes, version and digest in front --decode--> the same plan, with the places of the sender
//! ```
//!
//! What is known only where the plan runs does not travel: the environment of the process, the directory of step files, builtin steps, places in
//! texts, and the limit of time.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use ci_proto::agent::HandoverPlan;
use prost::Message as _;
use step_model::plan::Plan;
use step_model::reference::Digest;

/// The format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// Why bytes are no plan. Nothing of their content is said: it may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    #[error("the plan is damaged: {0}")]
    Damaged(String),
    #[error("the plan is of version {version}, and this program knows version {VERSION}")]
    UnknownVersion { version: u32 },
    /// It was written by a program that is wrong, or is not meant well.
    #[error("the plan cannot be right: {0}")]
    Impossible(String),
}

/// The plan as bytes. The same plan gives the same bytes.
pub fn encode(plan: &Plan) -> Vec<u8> {
    let content = encode::handover(plan).encode_to_vec();
    let digest = Digest::of(&content).bytes().to_vec();
    HandoverPlan { version: VERSION, content, digest }.encode_to_vec()
}

/// The plan that bytes hold. Total: any bytes, without a panic.
/// # Errors
/// They are damaged, of another version, or hold what no plan can.
pub fn decode(bytes: &[u8]) -> Result<Plan, NoPlan> {
    let damaged = |what: &str| NoPlan::Damaged(what.to_owned());
    let plan = HandoverPlan::decode(bytes).map_err(|_| damaged("it is no message of this kind"))?;
    match plan.version {
        VERSION => {}
        0 => return Err(damaged("it has no version")),
        version => return Err(NoPlan::UnknownVersion { version }),
    }
    if plan.digest != Digest::of(&plan.content).bytes() {
        return Err(damaged("its digest is another"));
    }
    let content =
        ci_proto::agent::Handover::decode(plan.content.as_slice()).map_err(|_| damaged("its content is no message of this kind"))?;
    decode::plan(&content)
}
