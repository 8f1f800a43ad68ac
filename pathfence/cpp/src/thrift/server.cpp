// SPDX-License-Identifier: Apache-2.0
#include "temper/pathfence/thrift/server.h"

#include <thrift/TApplicationException.h>
#include <thrift/processor/TMultiplexedProcessor.h>
#include <thrift/transport/TSocket.h>

#include <chrono>
#include <cstring>
#include <optional>

namespace temper::pathfence::thrift {
namespace {

namespace at = apache::thrift;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = 4096;

// What this thread read last, for the task that its server adds next.
thread_local Incoming incoming;
thread_local Call incoming_call;

// What the worker on this thread serves.
struct Job {
    const char* refused = nullptr;  // why, if it was
    Incoming incoming;
};
thread_local const Job* job_here = nullptr;

struct Serves {
    Context context;
    std::string service;
    Clock::time_point since;
};
thread_local const Serves* serves_here = nullptr;

template <class T>
class Here {
public:
    Here(const T*& place, const T& now) : place_(place), before_(place) { place = &now; }
    ~Here() { place_ = before_; }
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

private:
    const T*& place_;
    const T* before_;
};

// Sees the bytes of each frame as its server reads them.
class PeekingSocket : public at::transport::TSocket {
public:
    PeekingSocket(THRIFT_SOCKET socket, const Listener& listener) : TSocket(socket), listener_(listener) {}

    std::uint32_t read(std::uint8_t* to, std::uint32_t size) override {
        const std::uint32_t got = TSocket::read(to, size);
        for (std::uint32_t i = 0; i < got;) i += see(to + i, got - i);
        return got;
    }

private:
    // How many bytes were the frame's that is being read.
    std::uint32_t see(const std::uint8_t* bytes, std::uint32_t size) {
        if (sized_ < sizeof(length_)) {
            length_ = length_ << 8 | *bytes;
            if (++sized_ == sizeof(length_) && length_ == 0) finish();
            return 1;
        }
        const std::uint32_t mine = std::min(size, length_ - seen_);
        const std::size_t wanted = std::min<std::size_t>(mine, kMostBytes - frame_.size());
        frame_.insert(frame_.end(), bytes, bytes + wanted);
        seen_ += mine;
        if (seen_ == length_) finish();
        return mine;
    }

    void finish() {
        incoming = thrift::peek(frame_.data(), frame_.size(), listener_);
        incoming_call = call_of(incoming, listener_);
        frame_.clear();
        length_ = seen_ = 0;
        sized_ = 0;
    }

    const Listener listener_;
    std::vector<std::uint8_t> frame_;
    std::uint32_t length_ = 0, seen_ = 0;
    std::size_t sized_ = 0;
};

// Runs a server's task with its permit, or has it answered as refused.
class Fenced : public at::concurrency::Runnable {
public:
    Fenced(std::shared_ptr<Runnable> inner, Job job, Permit permit) : inner_(std::move(inner)), job_(std::move(job)), permit_(std::move(permit)) {}

    void run() override {
        const Here<Job> here(job_here, job_);
        const Permit permit = std::move(permit_);
        const Serving serving(permit);
        inner_->run();
    }

private:
    const std::shared_ptr<Runnable> inner_;
    const Job job_;
    Permit permit_;
};

void refuse(at::protocol::TProtocol& in, at::protocol::TProtocol& out, const std::string& method, at::protocol::TMessageType type, std::int32_t sequence, const std::string& reason) {
    in.skip(at::protocol::T_STRUCT);
    in.readMessageEnd();
    in.getTransport()->readEnd();
    if (type == at::protocol::T_ONEWAY) return;
    const at::TApplicationException refusal(at::TApplicationException::INTERNAL_ERROR, "pf-shed: " + reason);
    out.writeMessageBegin(method, at::protocol::T_EXCEPTION, sequence);
    refusal.write(&out);
    out.writeMessageEnd();
    out.getTransport()->writeEnd();
    out.getTransport()->flush();
}

}  // namespace

std::shared_ptr<at::transport::TSocket> FencedServerSocket::createSocket(THRIFT_SOCKET socket) { return std::make_shared<PeekingSocket>(socket, listener_); }

FencedThreadManager::FencedThreadManager(std::shared_ptr<Fence> fence, std::size_t workers)
    : fence_(std::move(fence)), workers_(newSimpleThreadManager(workers)), refusals_(newSimpleThreadManager(1)) {}

FencedThreadManager::~FencedThreadManager() = default;

void FencedThreadManager::add(std::shared_ptr<Runnable> task, std::int64_t, std::int64_t expiration) {
    Call call = incoming_call;
    const Time expires = expiration * kMillisecond;
    if (expires > 0 && (call.timeout == 0 || expires < call.timeout)) call.timeout = expires;
    fence_->submit(
        call,
        [workers = workers_, task, in = incoming](Permit p) { workers->add(std::make_shared<Fenced>(task, Job{nullptr, in}, std::move(p))); },
        [refusals = refusals_, task, in = incoming](const char* reason) { refusals->add(std::make_shared<Fenced>(task, Job{reason, in}, Permit())); });
}

void FencedThreadManager::start() {
    for (const auto& pool : {workers_, refusals_}) {
        if (!pool->threadFactory()) pool->threadFactory(std::make_shared<ThreadFactory>());
        pool->start();
    }
}

void FencedThreadManager::stop() {
    workers_->stop();
    refusals_->stop();
}

at::concurrency::ThreadManager::STATE FencedThreadManager::state() const { return workers_->state(); }
std::shared_ptr<at::concurrency::ThreadFactory> FencedThreadManager::threadFactory() const { return workers_->threadFactory(); }
void FencedThreadManager::threadFactory(std::shared_ptr<ThreadFactory> value) {
    workers_->threadFactory(value);
    refusals_->threadFactory(value);
}
void FencedThreadManager::addWorker(std::size_t value) { workers_->addWorker(value); }
void FencedThreadManager::removeWorker(std::size_t value) { workers_->removeWorker(value); }
std::size_t FencedThreadManager::idleWorkerCount() const { return workers_->idleWorkerCount(); }
std::size_t FencedThreadManager::workerCount() const { return workers_->workerCount(); }
std::size_t FencedThreadManager::pendingTaskCount() const { return workers_->pendingTaskCount() + static_cast<std::size_t>(fence_->waiting()); }
std::size_t FencedThreadManager::totalTaskCount() const { return workers_->totalTaskCount() + static_cast<std::size_t>(fence_->waiting()); }

bool FencedProcessor::process(std::shared_ptr<at::protocol::TProtocol> in, std::shared_ptr<at::protocol::TProtocol> out, void* connection) {
    std::string method;
    at::protocol::TMessageType type;
    std::int32_t sequence;
    in->readMessageBegin(method, type, sequence);
    Incoming request;
    request.context = split_name(method);
    request.method = method;
    if (!listener_.trusted) request.context = untrusted(std::move(request.context));
    if (job_here) request.context = job_here->incoming.context;

    std::string refused = job_here && job_here->refused ? job_here->refused : "";
    std::optional<Permit> permit;
    if (fence_ && refused.empty()) {
        try {
            permit.emplace(fence_->acquire(call_of(request, listener_)));
        } catch (const Shed& s) {
            refused = s.reason;
        }
    }
    if (!refused.empty()) {
        refuse(*in, *out, method, type, sequence, refused);
        return true;
    }
    std::optional<Serving> serving;
    if (permit) serving.emplace(*permit);
    const Serves serves{request.context, listener_.service, Clock::now()};
    const Here<Serves> here(serves_here, serves);
    return inner_->process(std::make_shared<at::protocol::StoredMessageProtocol>(in, method, type, sequence), out, connection);
}

Context onward_here() {
    if (!serves_here) return {};
    const Time used = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - serves_here->since).count();
    if (serves_here->service.empty()) return onward(serves_here->context, "-", used);
    return onward(serves_here->context, serves_here->service, used);
}

}  // namespace temper::pathfence::thrift
