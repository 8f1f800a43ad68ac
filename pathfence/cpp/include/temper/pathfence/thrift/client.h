// SPDX-License-Identifier: Apache-2.0
// What a Thrift client sends along, which edge it is, and a pool of connections behind a fence.
#pragma once

#include <thrift/protocol/TProtocolDecorator.h>

#include <mutex>

#include "temper/pathfence/thrift/server.h"

namespace temper::pathfence::thrift {

// Writes a request's key, deadline and visits in front of the method's name, and tells the fence of the request that
// this thread serves which edge it uses. Only for servers that read the prefix.
class FencedProtocol : public apache::thrift::protocol::TProtocolDecorator {
public:
    FencedProtocol(std::shared_ptr<apache::thrift::protocol::TProtocol> inner, std::string edge) : TProtocolDecorator(std::move(inner)), edge_(std::move(edge)) {}

    std::uint32_t writeMessageBegin_virt(const std::string& name, const apache::thrift::protocol::TMessageType type, const std::int32_t sequence) override {
        if (const Permit* p = Serving::here()) p->edge(edge_);
        return TProtocolDecorator::writeMessageBegin_virt(join_name(onward_here(), name), type, sequence);
    }

private:
    const std::string edge_;
};

// Connections to one downstream, as many as its fence has workers; who gets one is the fence's choice.
template <class Client>
class FencedPool {
public:
    FencedPool(std::shared_ptr<Fence> fence, std::function<std::shared_ptr<Client>()> connect) : fence_(std::move(fence)), connect_(std::move(connect)) {}

    // A connection, until it goes out of scope. One that is left by an exception is not used again.
    class Lease {
    public:
        Lease(FencedPool& pool, Permit permit, std::shared_ptr<Client> client)
            : pool_(&pool), permit_(std::move(permit)), client_(std::move(client)), exceptions_(std::uncaught_exceptions()) {}
        Lease(Lease&&) = default;
        ~Lease() {
            if (client_ && std::uncaught_exceptions() == exceptions_) pool_->give(std::move(client_));
        }
        Client* operator->() const { return client_.get(); }

    private:
        FencedPool* pool_;
        Permit permit_;
        std::shared_ptr<Client> client_;
        int exceptions_;
    };

    // Waits for a connection; throws Shed, or what connecting throws.
    Lease take(const Call& call) {
        Permit permit = fence_->acquire(call);
        std::shared_ptr<Client> client = idle();
        if (!client) client = connect_();  // one that throws leaves a permit that counts as failed
        return {*this, std::move(permit), std::move(client)};
    }

private:
    std::shared_ptr<Client> idle() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (clients_.empty()) return nullptr;
        auto client = std::move(clients_.back());
        clients_.pop_back();
        return client;
    }

    void give(std::shared_ptr<Client> client) {
        const std::lock_guard<std::mutex> lock(mutex_);
        clients_.push_back(std::move(client));
    }

    const std::shared_ptr<Fence> fence_;
    const std::function<std::shared_ptr<Client>()> connect_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<Client>> clients_;
};

}  // namespace temper::pathfence::thrift
