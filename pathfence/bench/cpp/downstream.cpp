// SPDX-License-Identifier: Apache-2.0
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TNonblockingServerSocket.h>

#include <atomic>
#include <iostream>
#include <thread>

#include "message.h"
#include "node.h"

namespace bench {

namespace at = apache::thrift;

void run_downstream(const DownstreamOptions& options) {
    std::atomic<std::int64_t> slow{1};
    const auto processor = std::make_shared<Processor>(
        [&](const std::string&, std::int64_t work_us) { std::this_thread::sleep_for(std::chrono::microseconds(work_us * options.percent / 100 * slow)); });
    serve({{"downstream", std::make_shared<at::server::TNonblockingServer>(
                              processor, std::make_shared<at::protocol::TBinaryProtocolFactory>(), std::make_shared<at::transport::TNonblockingServerSocket>(0),
                              start(at::concurrency::ThreadManager::newSimpleThreadManager(options.threads)))}});
    std::string command;
    for (std::int64_t times; std::cin >> command >> times;)
        if (command == "slow") slow = times;
}

}  // namespace bench
