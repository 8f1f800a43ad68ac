// SPDX-License-Identifier: Apache-2.0
// The one kind of call that the benchmark knows, without generated code: the method's name is the path, its only
// argument (1: i64) is how many microseconds the downstream has to work for it, and its result is empty.
#pragma once

#include <thrift/TProcessor.h>
#include <thrift/protocol/TProtocol.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace bench {

// Work for a path; what it throws becomes the answer.
using Handle = std::function<void(const std::string& path, std::int64_t work_us)>;

// While one is on a thread, calls there are answered as refused.
class Refusing {
public:
    Refusing();
    ~Refusing();
    Refusing(const Refusing&) = delete;
    Refusing& operator=(const Refusing&) = delete;
};

class Processor : public apache::thrift::TProcessor {
public:
    explicit Processor(Handle handle) : handle_(std::move(handle)) {}
    bool process(std::shared_ptr<apache::thrift::protocol::TProtocol> in, std::shared_ptr<apache::thrift::protocol::TProtocol> out, void*) override;

private:
    const Handle handle_;
};

// A connection to a server on this machine; one call at a time. The fence of a request that calls is told so: its port is
// the edge.
class Connection {
public:
    // Told what travels with a request, the server must be one that reads it.
    explicit Connection(int port, bool onward = false);
    // Throws what the server answered with, or what the transport said.
    void call(const std::string& path, std::int64_t work_us);

private:
    const std::string edge_;
    const std::shared_ptr<apache::thrift::protocol::TProtocol> protocol_;  // onward, it tells the edge itself
    const bool onward_;
};

}  // namespace bench
