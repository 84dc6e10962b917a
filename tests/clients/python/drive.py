"""Drives an agent through its published proto files, as a client in another language would.

    drive.py SOCKET PROTO_DIR SCRATCH_DIR

The modules are generated into SCRATCH_DIR first. Says each thing that it has seen work, one a line; the first that does not ends it.
"""

import importlib
import os
import sys
import threading

import grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_tools import protoc

STEP = "{}\n---\nrun:\n"


def generate(proto_dir, scratch):
    """The modules of step.proto and agent.proto."""
    bundled = os.path.join(os.path.dirname(protoc.__file__), "_proto")
    words = ["protoc", f"-I{proto_dir}", f"-I{bundled}", f"--python_out={scratch}", f"--grpc_python_out={scratch}", "step.proto", "agent.proto"]
    assert protoc.main(words) == 0, "the published proto files cannot be compiled"
    sys.path.insert(0, scratch)
    return [importlib.import_module(name) for name in ["step_pb2", "step_pb2_grpc", "agent_pb2", "agent_pb2_grpc"]]


def log_of(jobs, step, job, offset=0):
    return b"".join(answer.data for answer in jobs.FollowLogs(step.FollowLogsRequest(id=job, offset=offset), timeout=60))


def refused(call):
    """The error of a call that must not succeed."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("this must be refused")


def main(socket, proto_dir, scratch):
    step, step_grpc, agent, agent_grpc = generate(proto_dir, scratch)
    # gRPC's core makes the authority of a Unix socket from its path, with percent signs, which HTTP/2 forbids there and our server refuses.
    channel = grpc.insecure_channel(f"unix:{socket}", options=[("grpc.default_authority", "localhost")])
    jobs, more = step_grpc.StepRunnerStub(channel), agent_grpc.AgentStub(channel)

    request = step.RunRequest(id="python", steps=STEP + "  - {name: hello, script: 'echo $GREETING; echo; echo last'}\n", env={"GREETING": "from python"})
    request.owner_record = b"\x00mine"
    jobs.Run(request, wait_for_ready=True, timeout=60)
    log = log_of(jobs, step, "python")
    assert b"from python" in log and b"last" in log, log
    assert log_of(jobs, step, "python", 10) == log[10:]
    print("run and follow, from any byte")

    [status] = jobs.Status(step.StatusRequest(id="python")).jobs
    assert status.status == step.StepResult.success and status.message == "", status
    assert status.start_time.seconds > 0 and status.end_time.seconds >= status.start_time.seconds, status
    assert status.owner_record == b"\x00mine" and status.log_bytes == len(log), status
    print("status with the owner's record")

    chunks = list(more.Result(agent.ResultRequest(id="python")))
    whole = b"".join(chunk.data for chunk in chunks)
    assert chunks[-1].final and chunks[-1].total == len(whole), chunks[-1]
    tree = step.StepResult.FromString(whole)
    assert tree.status == step.StepResult.success and tree.sub_step_results[0].step.name == "hello", tree
    rest = b"".join(chunk.data for chunk in more.Result(agent.ResultRequest(id="python", offset=7, revision=chunks[-1].revision)))
    assert rest == whole[7:]
    print("the result, whole and from any byte")

    jobs.Run(step.RunRequest(id="fails", steps=STEP + "  - {name: bad, script: exit 7}\n"))
    log_of(jobs, step, "fails")
    [status] = jobs.Status(step.StatusRequest(id="fails")).jobs
    assert status.status == step.StepResult.failure and status.message.endswith("exit status 7") and status.exit_code == 7, status
    print("a failure with its exit code")

    jobs.Run(step.RunRequest(id="long", steps=STEP + "  - {name: sleeps, script: 'echo ready; sleep 1000'}\n"))
    ready, followed = threading.Event(), []

    def follow():
        for answer in jobs.FollowLogs(step.FollowLogsRequest(id="long")):
            followed.append(answer.data)
            if b"ready" in b"".join(followed):
                ready.set()
        ready.set()

    follower = threading.Thread(target=follow)
    follower.start()
    ready.wait(60)
    jobs.Cancel(step.CancelRequest(id="long"), timeout=5)
    follower.join(60)
    assert not follower.is_alive(), "the log of a cancelled job ends"
    [status] = jobs.Status(step.StatusRequest(id="long")).jobs
    assert status.status == step.StepResult.cancelled and status.error.kind == step.StatusError.cancelled, status
    print("cancel while following, and the log ends")

    error = refused(lambda: jobs.Status(step.StatusRequest(id="nobody")))
    assert error.code() == grpc.StatusCode.NOT_FOUND and error.details() == 'no job with id "nobody"', error
    assert [job.id for job in jobs.Status(step.StatusRequest()).jobs] and len(jobs.Status(step.StatusRequest()).jobs) == 3
    for job in ["python", "fails", "long", "nobody"]:
        jobs.Close(step.CloseRequest(id=job), timeout=60)
    assert not jobs.Status(step.StatusRequest()).jobs
    print("close, and nothing is left")

    reflection = ProtoReflectionDescriptorDatabase(channel)
    services = set(reflection.get_services())
    assert {"proto.StepRunner", "step_runner.v1.Agent"} <= services, services
    described = reflection.FindFileContainingSymbol("proto.StepRunner")
    assert {method.name for method in described.service[0].method} == {"Run", "Close", "FollowLogs", "Status", "Cancel"}, described
    print("reflection describes the services")

    # HealthCheckResponse.status = SERVING.
    assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60) == b"\x08\x01"
    print("the health service says that it serves")


if __name__ == "__main__":
    main(*sys.argv[1:])
