// SPDX-License-Identifier: Apache-2.0
// A Thrift service without generated code, a server that runs it, and calls to it over loopback.
#pragma once

#include <doctest/doctest.h>
#include <thrift/TApplicationException.h>
#include <thrift/concurrency/ThreadFactory.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TNonblockingServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "temper/pathfence/thrift/client.h"

namespace {

using namespace temper::pathfence;
using namespace temper::pathfence::thrift;
namespace at = apache::thrift;
using at::protocol::TProtocol;

// Every method takes one map<string,string>, does what the test says, and answers with an empty result; or, as generated
// code does, with the TApplicationException that was thrown.
class Service : public at::TProcessor {
public:
    using Handle = std::function<void(const std::string& method)>;

    explicit Service(Handle handle) : handle_(std::move(handle)) {}

    bool process(std::shared_ptr<TProtocol> in, std::shared_ptr<TProtocol> out, void*) override {
        std::string name;
        at::protocol::TMessageType type;
        std::int32_t sequence;
        in->readMessageBegin(name, type, sequence);
        in->skip(at::protocol::T_STRUCT);
        in->readMessageEnd();
        in->getTransport()->readEnd();
        try {
            handle_(name);
            if (type == at::protocol::T_ONEWAY) return true;
            out->writeMessageBegin(name, at::protocol::T_REPLY, sequence);
            out->writeStructBegin("result");
            out->writeFieldStop();
            out->writeStructEnd();
        } catch (const at::TApplicationException& x) {
            out->writeMessageBegin(name, at::protocol::T_EXCEPTION, sequence);
            x.write(out.get());
        }
        out->writeMessageEnd();
        out->getTransport()->writeEnd();
        out->getTransport()->flush();
        return true;
    }

private:
    const Handle handle_;
};

// Holds those who come until it is open.
class Gate {
public:
    void pass() {
        std::unique_lock<std::mutex> lock(mutex_);
        open_.wait(lock, [&] { return is_open_; });
    }

    void open() {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_open_ = true;
        open_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable open_;
    bool is_open_ = false;
};

inline void write_call(TProtocol& out, const std::string& method, const Headers& carrier, at::protocol::TMessageType type = at::protocol::T_CALL) {
    out.writeMessageBegin(method, type, 7);
    out.writeStructBegin("args");
    out.writeFieldBegin("carrier", at::protocol::T_MAP, 1);
    out.writeMapBegin(at::protocol::T_STRING, at::protocol::T_STRING, static_cast<std::uint32_t>(carrier.size()));
    for (const auto& [k, v] : carrier) {
        out.writeString(k);
        out.writeString(v);
    }
    out.writeMapEnd();
    out.writeFieldEnd();
    out.writeFieldStop();
    out.writeStructEnd();
    out.writeMessageEnd();
    out.getTransport()->writeEnd();
    out.getTransport()->flush();
}

inline std::shared_ptr<TProtocol> connected(int port) {
    const auto framed = std::make_shared<at::transport::TFramedTransport>(std::make_shared<at::transport::TSocket>("127.0.0.1", port));
    framed->open();
    return std::make_shared<at::protocol::TBinaryProtocol>(framed);
}

// What the server refused with, or nothing. All failures are INTERNAL_ERROR here: a refusal's type is no other, so its
// message is its mark.
inline std::string read_reply(TProtocol& in, const std::string& method) {
    std::string name;
    at::protocol::TMessageType type;
    std::int32_t sequence;
    in.readMessageBegin(name, type, sequence);
    CHECK(name == method);
    CHECK(sequence == 7);
    at::TApplicationException x;
    if (type == at::protocol::T_REPLY) {
        in.skip(at::protocol::T_STRUCT);
    } else {
        x.read(&in);
        CHECK(x.getType() == at::TApplicationException::INTERNAL_ERROR);
    }
    in.readMessageEnd();
    in.getTransport()->readEnd();
    return type == at::protocol::T_REPLY ? "" : x.what();
}

// Calls a method on a connection of its own; gives back what the server refused with, or nothing.
inline std::string call(int port, const std::string& method, const Context& context = {}) {
    const auto binary = connected(port);
    write_call(*binary, context.path.empty() && context.timeout == 0 ? method : join_name(context, method), {});
    return read_reply(*binary, method);
}

// Calls on from a request that is served, as generated code does: a refusal is thrown.
inline void pass_on(int port, const std::string& edge) {
    FencedProtocol out(connected(port), edge);
    write_call(out, edge, {});
    const std::string refusal = read_reply(out, edge);
    if (!refusal.empty()) throw at::TApplicationException(at::TApplicationException::INTERNAL_ERROR, refusal);
}

template <class Protocol>
std::vector<std::uint8_t> message(const std::string& method, const Headers& carrier) {
    const auto memory = std::make_shared<at::transport::TMemoryBuffer>();
    Protocol out(memory);
    write_call(out, method, carrier);
    std::uint8_t* bytes;
    std::uint32_t size;
    memory->getBuffer(&bytes, &size);
    return {bytes, bytes + size};
}

// A server, from when it listens until it goes out of scope.
class Running {
public:
    explicit Running(at::server::TServer& server) : server_(server) {
        const auto ready = std::make_shared<Ready>();
        server_.setServerEventHandler(ready);
        thread_ = std::thread([this] { server_.serve(); });
        ready->promise.get_future().wait();
    }
    ~Running() {
        server_.stop();
        thread_.join();
    }

private:
    struct Ready : at::server::TServerEventHandler {
        void preServe() override { promise.set_value(); }
        std::promise<void> promise;
    };

    at::server::TServer& server_;
    std::thread thread_;
};

// A TNonblockingServer behind a fence, while it is in scope.
class FencedServer {
public:
    FencedServer(const Config& config, const Listener& listener, Service::Handle handle, int workers = 4)
        : fence(std::make_shared<Fence>(config)),
          threads(started(fence, workers)),
          server_(std::make_shared<FencedProcessor>(std::make_shared<Service>(std::move(handle)), listener), std::make_shared<at::protocol::TBinaryProtocolFactory>(),
                  std::make_shared<FencedServerSocket>(0, listener), threads),
          running_(server_) {}
    // A worker may still be busy with the end of a request whose answer has arrived.
    ~FencedServer() { threads->stop(); }
    int port() { return server_.getListenPort(); }

    const std::shared_ptr<Fence> fence;
    const std::shared_ptr<FencedThreadManager> threads;

private:
    static std::shared_ptr<FencedThreadManager> started(const std::shared_ptr<Fence>& fence, int workers) {
        auto out = std::make_shared<FencedThreadManager>(fence, static_cast<std::size_t>(workers));
        out->start();
        return out;
    }

    at::server::TNonblockingServer server_;
    const Running running_;
};

// Two classes with all the time they need, and what lets requests of one of them wait.
inline Config slow_and_quick(std::int64_t workers) {
    Config c;
    c.workers = workers;
    c.classes.push_back({"slow", {"slow"}, 0, 600'000 * kMillisecond, 0, 0});
    c.classes.push_back({"quick", {"quick"}, 0, 600'000 * kMillisecond, 0, 0});
    return c;
}

const Listener shared{"shared", true, false, {}};

inline Service::Handle slow_at(Gate& gate) {
    return [&gate](const std::string& method) {
        if (method == "slow") gate.pass();
    };
}

}  // namespace
