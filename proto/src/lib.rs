//! The wire and nothing else: messages and services as they travel.
//!
//! Source: `step.proto`, which says where its names and numbers come from. The generated types are [`prost`]'s; protobuf's JSON and text
//! format are read with [`descriptors`].

use prost_reflect::{DescriptorPool, MessageDescriptor};
use std::sync::LazyLock;

/// The modules stand as the packages do, since the generated code names one from the other so.
mod generated {
    #[expect(clippy::allow_attributes, clippy::allow_attributes_without_reason, clippy::doc_markdown, reason = "generated from step.proto")]
    pub mod proto {
        tonic::include_proto!("proto");
    }
    pub mod step_runner {
        #[expect(
            clippy::allow_attributes,
            clippy::allow_attributes_without_reason,
            clippy::doc_markdown,
            reason = "generated from agent.proto"
        )]
        pub mod v1 {
            tonic::include_proto!("step_runner.v1");
        }
    }
    pub mod runner_core {
        pub mod results {
            #[expect(
                clippy::allow_attributes,
                clippy::allow_attributes_without_reason,
                clippy::doc_markdown,
                clippy::large_enum_variant,
                reason = "generated from results.proto"
            )]
            pub mod v1 {
                tonic::include_proto!("runner_core.results.v1");
            }
        }
    }
}

/// What runners and fleeting plugins say to each other.
pub mod fleeting {
    /// Package `proto`: the service `proto.InstanceGroup` and its messages (`fleeting.proto`).
    #[expect(
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        clippy::doc_markdown,
        reason = "generated from fleeting.proto"
    )]
    pub mod instance_group {
        include!(concat!(env!("OUT_DIR"), "/fleeting/proto.rs"));
    }
    /// Package `plugin`: what every plugin of go-plugin serves (`go_plugin.proto`).
    #[expect(
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        clippy::doc_markdown,
        reason = "generated from go_plugin.proto"
    )]
    pub mod go_plugin {
        include!(concat!(env!("OUT_DIR"), "/fleeting/plugin.rs"));
    }
    /// The encoded `FileDescriptorSet` of both, for reflection.
    pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fleeting/descriptors.bin"));
}

/// Package `proto`: GitLab's service `proto.StepRunner` and its messages, with our fields from 1000 up.
pub use generated::proto as step_runner;
/// Package `runner_core.results.v1`: how results reach whoever keeps them, `runner_core.results.v1.Results`.
pub use generated::runner_core::results::v1 as results;
/// Package `step_runner.v1`: our second service, `step_runner.v1.Agent`.
pub use generated::step_runner::v1 as agent;

/// The encoded `FileDescriptorSet` of all files, with what they import.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Describes all messages. Built at the first call.
pub fn descriptors() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        #[expect(clippy::expect_used, reason = "the set was encoded by our own build script")]
        DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the descriptors that the build wrote are valid")
    });
    &POOL
}

/// Describes one message of the package `proto`, by its name there: `RunRequest`, `Step.Reference`. `None`: there is no such message.
pub fn message(name: &str) -> Option<MessageDescriptor> {
    descriptors().get_message_by_name(&format!("proto.{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name and number of every field, as GitLab's program describes itself, and docs/reference/result.md for ours.
    fn fields(name: &str) -> String {
        let fields = message(name).unwrap().fields().map(|field| (field.number(), field.json_name().to_owned())).collect::<Vec<_>>();
        let mut sorted = fields;
        sorted.sort();
        sorted.iter().map(|(number, name)| format!("{number} {name}")).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn fields_have_the_names_and_numbers_of_the_original() {
        assert_eq!(fields("Step"), "1 name, 2 step, 3 env, 4 inputs");
        assert_eq!(
            fields("Step.Reference"),
            "1 protocol, 2 url, 3 path, 4 filename, 5 version, 6 registry, 7 repository, 8 tag, 9 specDef, 10 pathExp, 11 paths"
        );
        assert_eq!(fields("Definition"), "1 type, 2 exec, 3 steps, 4 outputs, 5 env, 6 delegate");
        assert_eq!(fields("Spec.Content"), "1 inputs, 2 outputs, 3 outputMethod");
        assert_eq!(fields("Job"), "1 variables, 4 buildDir");
        assert_eq!(
            fields("RunRequest"),
            "1 id, 2 workDir, 3 env, 5 job, 6 steps, 1000 timeout, 1001 plan, 1002 traceparent, 1003 ownerRecord, 1004 policy, 1005 limits, 1006 jobSteps"
        );
        assert_eq!(
            fields("Status"),
            "1 id, 2 message, 3 status, 5 startTime, 6 endTime, 1000 failureKind, 1001 exitCode, 1002 logBytes, 1003 ownerRecord, 1004 error"
        );
        assert_eq!(
            fields("StepResult"),
            "1 step, 2 specDefinition, 4 status, 5 outputs, 6 exports, 7 env, 8 execResult, 9 subStepResults, 1000 startTime, 1001 endTime, \
             1002 usage, 1003 digest, 1004 failureKind, 1005 signal, 1006 commit, 1007 dirty, 1008 sensitiveOutputs, 1009 failureMessage, 1010 traceparent, \
             1011 limits, 1012 filtered, 1013 failureAllowed"
        );
    }

    #[test]
    fn the_service_has_the_methods_of_the_original() {
        let service = descriptors().get_service_by_name("proto.StepRunner").unwrap();
        let methods: Vec<_> = service.methods().map(|method| method.name().to_owned()).collect();
        assert_eq!(methods, ["Run", "Close", "FollowLogs", "Status", "Cancel"]);
    }

    #[test]
    fn enumerations_have_the_numbers_of_the_original() {
        use step_runner::{StepReferenceProtocol, ValueType};
        assert_eq!((StepReferenceProtocol::SpecDef as i32, ValueType::String as i32), (7, 2));
        assert_eq!((ValueType::from_str_name("struct"), ValueType::try_from(1).ok()), (Some(ValueType::Struct), None));
    }
}
