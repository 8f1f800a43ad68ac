// SPDX-License-Identifier: Apache-2.0
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TNonblockingServerSocket.h>

#include <iostream>

#include "message.h"
#include "node.h"
#include "shedding.h"
#include "temper/pathfence/thrift/server.h"

namespace bench {
namespace {

namespace at = apache::thrift;
namespace pf = temper::pathfence;
using at::concurrency::ThreadManager;
using at::server::TNonblockingServer;

// Each worker has its own connection to each downstream, as Thrift's clients are for one thread.
void pass_on(const ServiceOptions& options, const std::string& path, std::int64_t work_us) {
    thread_local std::map<int, Connection> connections;
    for (const int port : options.downstreams.at(path)) {
        const auto at = connections.try_emplace(port, port, options.onward).first;
        try {
            at->second.call(path, work_us);
        } catch (...) {
            connections.erase(at);
            throw;
        }
    }
}

std::shared_ptr<TNonblockingServer> server(std::shared_ptr<at::TProcessor> processor, std::shared_ptr<at::transport::TNonblockingServerTransport> socket,
                                           std::shared_ptr<ThreadManager> manager) {
    return std::make_shared<TNonblockingServer>(std::move(processor), std::make_shared<at::protocol::TBinaryProtocolFactory>(), std::move(socket), start(std::move(manager)));
}

std::shared_ptr<TNonblockingServer> fenced(const ServiceOptions& options, std::shared_ptr<Processor> processor) {
    const auto fence = std::make_shared<pf::Fence>(pf::parse_config(options.fence));
    pf::thrift::Listener listener;
    listener.service = options.name;
    listener.trusted = !options.name.empty();
    return server(std::make_shared<pf::thrift::FencedProcessor>(std::move(processor), listener), std::make_shared<pf::thrift::FencedServerSocket>(0, listener),
                  std::make_shared<pf::thrift::FencedThreadManager>(fence, options.workers));
}

// One of so many servers that share the workers.
std::shared_ptr<TNonblockingServer> plain(const ServiceOptions& options, std::shared_ptr<Processor> processor, std::size_t servers) {
    const std::size_t workers = options.workers / servers;
    std::shared_ptr<ThreadManager> manager = ThreadManager::newSimpleThreadManager(workers);
    if (options.most > 0) manager = std::make_shared<SheddingThreadManager>(workers, options.most / servers, std::chrono::milliseconds(options.target_ms));
    const auto out = server(std::move(processor), std::make_shared<at::transport::TNonblockingServerSocket>(0), std::move(manager));
    out->setTaskExpireTime(options.expire_ms);
    return out;
}

}  // namespace

void run_service(const ServiceOptions& options) {
    const auto processor = std::make_shared<Processor>(
        [&](const std::string& path, std::int64_t work_us) { pass_on(options, path, work_us); });
    std::map<std::string, std::shared_ptr<TNonblockingServer>> servers;
    if (options.bulkhead)
        for (const auto& [path, ports] : options.downstreams) servers[path] = plain(options, processor, options.downstreams.size());
    else
        servers["service"] = options.fence.empty() ? plain(options, processor, 1) : fenced(options, processor);
    serve(servers);
    std::cin.ignore(std::numeric_limits<std::streamsize>::max());
}

}  // namespace bench
