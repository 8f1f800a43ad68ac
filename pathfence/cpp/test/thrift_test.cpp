// SPDX-License-Identifier: Apache-2.0
// The fence in TNonblockingServer and in TThreadPoolServer, over loopback; and what is read of a message.
#include <thrift/TApplicationException.h>
#include <thrift/concurrency/ThreadFactory.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/protocol/THeaderProtocol.h>
#include <thrift/server/TNonblockingServer.h>
#include <thrift/server/TThreadPoolServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>
#include <thrift/transport/TSocket.h>

#include <condition_variable>
#include <future>
#include <thread>

#include "check.h"
#include "temper/pathfence/thrift/client.h"

namespace {

using namespace temper::pathfence;
using namespace temper::pathfence::thrift;
namespace at = apache::thrift;
using at::protocol::TProtocol;

// A service without generated code: every method takes one map<string,string> and answers with an empty result.
// Methods named "slow" wait until the gate is open.
class Service : public at::TProcessor {
public:
    bool process(std::shared_ptr<TProtocol> in, std::shared_ptr<TProtocol> out, void*) override {
        std::string name;
        at::protocol::TMessageType type;
        std::int32_t sequence;
        in->readMessageBegin(name, type, sequence);
        in->skip(at::protocol::T_STRUCT);
        in->readMessageEnd();
        in->getTransport()->readEnd();
        if (name == "slow") {
            std::unique_lock<std::mutex> lock(mutex_);
            open_.wait(lock, [&] { return is_open_; });
        }
        out->writeMessageBegin(name, at::protocol::T_REPLY, sequence);
        out->writeStructBegin("result");
        out->writeFieldStop();
        out->writeStructEnd();
        out->writeMessageEnd();
        out->getTransport()->writeEnd();
        out->getTransport()->flush();
        return true;
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

void write_call(TProtocol& out, const std::string& method, const Headers& carrier) {
    out.writeMessageBegin(method, at::protocol::T_CALL, 7);
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

// Calls a method on a connection of its own; gives back what the server refused with, or nothing.
std::string call(int port, const std::string& method, const Context& context = {}) {
    const auto socket = std::make_shared<at::transport::TSocket>("127.0.0.1", port);
    const auto framed = std::make_shared<at::transport::TFramedTransport>(socket);
    framed->open();
    const auto binary = std::make_shared<at::protocol::TBinaryProtocol>(framed);
    write_call(*binary, context.path.empty() && context.timeout == 0 ? method : join_name(context, method), {});
    std::string name;
    at::protocol::TMessageType type;
    std::int32_t sequence;
    binary->readMessageBegin(name, type, sequence);
    CHECK(name == method && sequence == 7);
    if (type == at::protocol::T_REPLY) return "";
    at::TApplicationException x;
    x.read(binary.get());
    return x.what();
}

Config config() {
    Config c;
    c.workers = 4;
    c.classes.push_back({"slow", {"slow"}, 0, 600'000 * kMillisecond, 0, 0});
    c.classes.push_back({"quick", {"quick"}, 0, 600'000 * kMillisecond, 0, 0});
    return c;
}

const Listener listener{"shared", true, false, {}};

// While one method's requests have all the workers that they may have, the other's are served, and what cannot be in
// time is refused.
void isolates(int port, const Fence& fence, Service& service) {
    std::vector<std::future<std::string>> slow;
    for (int i = 0; i < 6; ++i) slow.push_back(std::async(std::launch::async, [port] { return call(port, "slow"); }));
    while (fence.waiting() + fence.in_flight() < 6) std::this_thread::yield();
    CHECK(fence.in_flight() < 4);
    for (int i = 0; i < 5; ++i) CHECK(call(port, "quick").empty());
    CHECK(call(port, "slow", {"", 20 * kMillisecond, ""}) == "pf-shed: expired");
    service.open();
    for (auto& s : slow) CHECK(s.get().empty());
    while (fence.in_flight() > 0) std::this_thread::yield();
}

template <class Server>
void serve(Server& server, const std::function<int()>& port, const Fence& fence, Service& service) {
    struct Ready : at::server::TServerEventHandler {
        void preServe() override { promise.set_value(); }
        std::promise<void> promise;
    };
    const auto ready = std::make_shared<Ready>();
    server.setServerEventHandler(ready);
    std::thread thread([&] { server.serve(); });
    ready->promise.get_future().wait();
    isolates(port(), fence, service);
    server.stop();
    thread.join();
}

void nonblocking() {
    const auto fence = std::make_shared<Fence>(config());
    const auto service = std::make_shared<Service>();
    const auto socket = std::make_shared<FencedServerSocket>(0, listener);
    const auto workers = std::make_shared<FencedThreadManager>(fence, 4);
    workers->start();
    at::server::TNonblockingServer server(std::make_shared<FencedProcessor>(service, listener), std::make_shared<at::protocol::TBinaryProtocolFactory>(), socket, workers);
    serve(server, [&] { return server.getListenPort(); }, *fence, *service);
    workers->stop();
}

void thread_pool() {
    const auto fence = std::make_shared<Fence>(config());
    const auto service = std::make_shared<Service>();
    const auto socket = std::make_shared<at::transport::TServerSocket>("127.0.0.1", 0);
    const auto workers = at::concurrency::ThreadManager::newSimpleThreadManager(16);
    workers->threadFactory(std::make_shared<at::concurrency::ThreadFactory>());
    workers->start();
    at::server::TThreadPoolServer server(std::make_shared<FencedProcessor>(service, listener, fence), socket, std::make_shared<at::transport::TFramedTransportFactory>(),
                                         std::make_shared<at::protocol::TBinaryProtocolFactory>(), workers);
    serve(server, [&] { return socket->getPort(); }, *fence, *service);
}

const Context full{"home.read", 240 * kMillisecond, "shared*2"};

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

template <class Protocol>
void read_in() {
    Headers carrier{{"other", "x"}};
    write_headers(full, carrier);
    Listener l = listener;
    auto bytes = message<Protocol>("read", carrier);
    CHECK(peek(bytes.data(), bytes.size(), l).method == "read" && peek(bytes.data(), bytes.size(), l).context.path.empty());
    l.carrier = true;
    const Incoming in = peek(bytes.data(), bytes.size(), l);
    CHECK(in.method == "read" && in.context.path == full.path && in.context.timeout == full.timeout && depth_of(in.context, "shared") == 2);
    l.trusted = false;
    CHECK(peek(bytes.data(), bytes.size(), l).context.path.empty() && peek(bytes.data(), bytes.size(), l).context.timeout == full.timeout);
    bytes = message<Protocol>(join_name(full, "read"), {});
    const Incoming prefixed = peek(bytes.data(), bytes.size(), listener);
    CHECK(prefixed.method == "read" && prefixed.context.path == full.path && call_of(prefixed, listener).depth == 2);
    l.trusted = true;
    for (std::size_t size = 0; size < bytes.size(); ++size) peek(bytes.data(), size, l);
}

void theader() {
    const auto memory = std::make_shared<at::transport::TMemoryBuffer>();
    at::protocol::THeaderProtocol out(memory);
    Headers headers;
    write_headers(full, headers);
    for (const auto& [k, v] : headers) out.setHeader(k, v);
    write_call(out, "read", {});
    std::uint8_t* bytes;
    std::uint32_t size;
    memory->getBuffer(&bytes, &size);
    const Incoming in = peek(bytes + 4, size - 4, listener);
    CHECK(in.method == "read" && in.context.path == full.path && in.context.visits == full.visits);
    for (std::uint32_t n = 4; n < size; ++n) peek(bytes + 4, n - 4, listener);
}

}  // namespace

int main() {
    read_in<at::protocol::TBinaryProtocol>();
    read_in<at::protocol::TCompactProtocol>();
    theader();
    nonblocking();
    thread_pool();
    return 0;
}
