// SPDX-License-Identifier: Apache-2.0
// The fence in Apache Thrift's servers, on the library as distributions ship it.
//
// TNonblockingServer: requests wait before a worker is taken. FencedServerSocket sees a frame's bytes on the I/O thread
// just before the server hands its task to the thread manager on that same thread; FencedThreadManager parks the task
// until the fence grants it, and has what is refused answered by a thread of its own. FencedProcessor answers.
//
//     auto fence = std::make_shared<Fence>(load_config());
//     Listener listener;
//     listener.service = "posts";
//     auto threads = std::make_shared<FencedThreadManager>(fence, workers);
//     threads->start();
//     TNonblockingServer server(std::make_shared<FencedProcessor>(processor, listener), protocol,
//                               std::make_shared<FencedServerSocket>(port, listener), threads);
//
// stop() has what was granted served, and what waits answered as refused ("closed"): stop the threads before the server
// where clients are to be told.
//
// TThreadPoolServer, TThreadedServer: a thread belongs to a connection. FencedProcessor with a fence holds the request
// back on its connection's thread; what is fenced is what lies behind it, and what cannot be in time is refused.
#pragma once

#include <thrift/TProcessor.h>
#include <thrift/concurrency/ThreadManager.h>
#include <thrift/transport/TNonblockingServerSocket.h>

#include "temper/pathfence/wire.h"

namespace temper::pathfence::thrift {

class Workers;  // threads that run what the fence has let in

// How a server reads what its peers send.
struct Listener {
    std::string service;    // this service's name in pf.visits; empty: re-entry is not seen
    bool trusted = false;   // peers may choose keys and depths
    bool carrier = false;   // look for the three keys in a method's map<string,string>
    Headers keys;           // from a method's name to its key; without an entry the name is the key
};

// What a request said, as far as the listener lets it.
struct Incoming {
    std::string method;
    Context context;
    bool prefixed = false;  // the three stood in front of the method's name
};

// Reads a message without its frame's length: binary, compact or THeader. Of what is no message nothing is known.
Incoming peek(const std::uint8_t* bytes, std::size_t size, const Listener& listener);

Call call_of(const Incoming& incoming, const Listener& listener);

class FencedServerSocket : public apache::thrift::transport::TNonblockingServerSocket {
public:
    FencedServerSocket(int port, Listener listener) : TNonblockingServerSocket(port), listener_(std::move(listener)) {}

protected:
    std::shared_ptr<apache::thrift::transport::TSocket> createSocket(THRIFT_SOCKET socket) override;

private:
    const Listener listener_;
};

class FencedThreadManager : public apache::thrift::concurrency::ThreadManager {
public:
    using Runnable = apache::thrift::concurrency::Runnable;
    using ThreadFactory = apache::thrift::concurrency::ThreadFactory;

    FencedThreadManager(std::shared_ptr<Fence> fence, std::size_t workers);
    ~FencedThreadManager() override;

    void add(std::shared_ptr<Runnable> task, std::int64_t timeout = 0, std::int64_t expiration = 0) override;

    void start() override;
    void stop() override;
    STATE state() const override;
    std::shared_ptr<ThreadFactory> threadFactory() const override;
    void threadFactory(std::shared_ptr<ThreadFactory> value) override;
    void addWorker(std::size_t value) override;
    void removeWorker(std::size_t value) override;
    std::size_t idleWorkerCount() const override;
    std::size_t workerCount() const override;
    std::size_t pendingTaskCount() const override;
    std::size_t totalTaskCount() const override;
    std::size_t pendingTaskCountMax() const override { return 0; }
    std::size_t expiredTaskCount() const override { return 0; }
    // What waits is the fence's: it cannot be taken out by the server.
    void remove(std::shared_ptr<Runnable>) override {}
    std::shared_ptr<Runnable> removeNextPending() override { return nullptr; }
    void removeExpiredTasks() override {}
    void setExpireCallback(ExpireCallback) override {}

private:
    const std::shared_ptr<Fence> fence_;
    // Shared with tasks that the fence still holds when this is gone.
    const std::shared_ptr<Workers> workers_, refusals_;
};

class FencedProcessor : public apache::thrift::TProcessor {
public:
    // Behind a FencedThreadManager.
    FencedProcessor(std::shared_ptr<apache::thrift::TProcessor> inner, Listener listener) : FencedProcessor(std::move(inner), std::move(listener), nullptr) {}
    // In a server with a thread for each connection.
    FencedProcessor(std::shared_ptr<apache::thrift::TProcessor> inner, Listener listener, std::shared_ptr<Fence> fence)
        : inner_(std::move(inner)), listener_(std::move(listener)), fence_(std::move(fence)) {}

    bool process(std::shared_ptr<apache::thrift::protocol::TProtocol> in, std::shared_ptr<apache::thrift::protocol::TProtocol> out, void* connection) override;

    struct Serves;

private:
    bool serve(const Serves& serves, Permit* permit, std::shared_ptr<apache::thrift::protocol::TProtocol> in,
               std::shared_ptr<apache::thrift::protocol::TProtocol> out, void* connection);

    const std::shared_ptr<apache::thrift::TProcessor> inner_;
    const Listener listener_;
    const std::shared_ptr<Fence> fence_;
};

// What the request that this thread serves should send on to services that it calls; empty outside of any.
Context onward_here();

}  // namespace temper::pathfence::thrift
