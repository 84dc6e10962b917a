// Command host leads a fleeting plugin through a whole life with the public Go library, as GitLab's runner does, and says what it saw.
//
//	host PLUGIN CONFIG COUNT        through the library's provisioner
//	host --tls PLUGIN CONFIG COUNT  through go-plugin alone, with its automatic mutual TLS, which the library does not ask for
//
// It prints one line for each thing that went well and ends with 0 when all of them did.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	hplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
)

const patience = 60 * time.Second

func main() {
	arguments := os.Args[1:]
	tls := len(arguments) > 0 && arguments[0] == "--tls"
	if tls {
		arguments = arguments[1:]
	}
	if len(arguments) != 3 {
		fail("usage: host [--tls] PLUGIN CONFIG COUNT")
	}
	count, err := strconv.Atoi(arguments[2])
	check("read the count", err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if tls {
		encrypted(ctx, arguments[0], arguments[1], count)
	} else {
		provisioned(ctx, arguments[0], arguments[1], count)
	}
}

func provisioned(ctx context.Context, program, config string, count int) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: os.Stderr})
	runner, err := fleeting.RunPlugin(program, []byte(config), fleeting.WithPluginLogger(logger))
	check("start the plugin", err)
	say("started")
	group, err := fleeting.Init(ctx, logger, runner.InstanceGroup(),
		fleeting.WithMaxSize(count), fleeting.WithUpdateInterval(100*time.Millisecond),
		fleeting.WithUpdateIntervalWhenExpecting(20*time.Millisecond), fleeting.WithShutdownDeletionInterval(100*time.Millisecond))
	check("take up the group", err)
	say("initialized")
	group.Request(count)
	until(ctx, "instances run", func() bool { return running(group) == count })
	say("running %d", count)
	for _, instance := range group.Instances() {
		info, err := instance.ConnectInfo(ctx)
		check("learn how to reach an instance", err)
		check("hear the heart of an instance", instance.Heartbeat(ctx))
		say("reached by %q at %t", info.Protocol, info.InternalAddr != "" || info.ExternalAddr != "")
	}
	if group.HasCapability(provider.CapabilitySuspendResume) {
		ids := []string{group.Instances()[0].ID()}
		_, err = group.Suspend(ctx, ids)
		check("suspend", err)
		check("resume", group.ResumeAndWait(ctx, ids))
		say("slept and woke")
	} else if _, err := runner.InstanceGroup().Suspend(ctx, []string{"x"}); err == nil || !strings.Contains(err.Error(), "not supported") {
		fail("suspend of a plugin that cannot: %v", err)
	}
	for _, instance := range group.Instances() {
		instance.Delete()
	}
	until(ctx, "instances are gone", func() bool { return len(group.Instances()) == 0 })
	say("gone")
	group.Shutdown(ctx)
	begun := time.Now()
	runner.Kill()
	if took := time.Since(begun); took > 1500*time.Millisecond {
		fail("the plugin had to be killed: %s", took)
	}
	say("ended")
}

func running(group *fleeting.Provisioner) int {
	count := 0
	for _, instance := range group.Instances() {
		if instance.State() == provider.StateRunning {
			count++
		}
	}
	return count
}

// connection is a plugin that is nothing but its connection.
type connection struct{ hplugin.NetRPCUnsupportedPlugin }

func (connection) GRPCServer(*hplugin.GRPCBroker, *grpc.Server) error { return nil }

func (connection) GRPCClient(_ context.Context, _ *hplugin.GRPCBroker, c *grpc.ClientConn) (interface{}, error) {
	return c, nil
}

// Messages with one field of number 1 look alike on the wire, so the well-known wrappers stand for them.
func encrypted(ctx context.Context, program, config string, count int) {
	client := hplugin.NewClient(&hplugin.ClientConfig{
		HandshakeConfig: hplugin.HandshakeConfig{
			MagicCookieKey: "FLEETING_INSTANCE_GROUP_PLUGIN", MagicCookieValue: "4c6410b1-cb78-4962-8c76-ab936d0ea908",
		},
		VersionedPlugins: map[int]hplugin.PluginSet{0: {"group": connection{}}},
		Cmd:              exec.Command(program),
		AllowedProtocols: []hplugin.Protocol{hplugin.ProtocolGRPC},
		AutoMTLS:         true,
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: os.Stderr}),
	})
	protocol, err := client.Client()
	check("start the plugin", err)
	say("started")
	check("ask for its health", protocol.Ping())
	say("healthy")
	raw, err := protocol.Dispense("group")
	check("get the connection", err)
	wire := raw.(*grpc.ClientConn)
	call := func(method string, in, out interface{}) {
		check(method, wire.Invoke(ctx, "/proto.InstanceGroup/"+method, in, out))
	}
	call("Init", wrapperspb.Bytes([]byte(config)), &wrapperspb.StringValue{})
	say("initialized")
	made := &wrapperspb.UInt32Value{}
	call("Increase", wrapperspb.UInt32(uint32(count)), made)
	if made.Value != uint32(count) {
		fail("made %d instead of %d", made.Value, count)
	}
	until(ctx, "instances run", func() bool { return len(update(ctx, wire)) == count })
	say("running %d", count)
	for _, id := range update(ctx, wire) {
		call("ConnectInfo", wrapperspb.String(id), &emptypb.Empty{})
		call("Heartbeat", wrapperspb.String(id), &emptypb.Empty{})
		call("Decrease", wrapperspb.String(id), &wrapperspb.StringValue{})
	}
	until(ctx, "instances are gone", func() bool { return len(update(ctx, wire)) == 0 })
	say("gone")
	call("Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	begun := time.Now()
	client.Kill()
	if took := time.Since(begun); took > 1500*time.Millisecond {
		fail("the plugin had to be killed: %s", took)
	}
	say("ended")
}

// update returns the ids of all that are there.
func update(ctx context.Context, wire *grpc.ClientConn) []string {
	stream, err := wire.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/proto.InstanceGroup/Update")
	check("Update", err)
	check("Update", stream.SendMsg(&emptypb.Empty{}))
	check("Update", stream.CloseSend())
	var ids []string
	for {
		instance := &wrapperspb.StringValue{}
		err := stream.RecvMsg(instance)
		if err == io.EOF {
			sort.Strings(ids)
			return ids
		}
		check("Update", err)
		// Field 2 is the state; 3 is deleted.
		if unknown := instance.ProtoReflect().GetUnknown(); string(unknown) != "\x10\x03" {
			ids = append(ids, instance.Value)
		}
	}
}

func until(ctx context.Context, what string, so func() bool) {
	for !so() {
		if ctx.Err() != nil {
			fail("not within %s: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func say(format string, values ...interface{}) { fmt.Printf(format+"\n", values...) }

func check(what string, err error) {
	if err != nil {
		fail("could not %s: %v", what, err)
	}
}

func fail(format string, values ...interface{}) {
	fmt.Fprintf(os.Stderr, "host: "+format+"\n", values...)
	os.Exit(1)
}
