// SPDX-License-Identifier: Apache-2.0
#include "temper/pathfence/thrift/server.h"

#include <thrift/TApplicationException.h>
#include <thrift/concurrency/Exception.h>
#include <thrift/processor/TMultiplexedProcessor.h>
#include <thrift/protocol/TProtocolDecorator.h>
#include <thrift/transport/TSocket.h>

#include <chrono>
#include <optional>
#include <utility>

#include "workers.h"

namespace temper::pathfence::thrift {

// What the request that a thread serves came with; what it sends on is made of that when it calls somebody.
struct FencedProcessor::Serves {
    const Context& context;
    const std::string& key;
    const Listener& listener;
    const std::chrono::steady_clock::time_point since;
};

namespace {

namespace at = apache::thrift;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = 4096;

// What a worker serves.
struct Job {
    Incoming incoming;
    Call call;
    Clock::time_point since = Clock::now();  // when it came: its wait for a worker is time that it has used
    bool plain = false;                      // its frame's message is the method's own, and has not been served
    const char* refused = nullptr;           // why, if it was
    Outcome outcome = Outcome::ok;
};
thread_local Job* job_here = nullptr;

thread_local const FencedProcessor::Serves* serves_here = nullptr;

template <class T>
class Here {
public:
    Here(T*& place, T& now) : place_(place), before_(place) { place = &now; }
    ~Here() { place_ = before_; }
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

private:
    T*& place_;
    T* const before_;
};

// Runs a server's task with its permit, or has it answered as refused.
class Fenced : public at::concurrency::Runnable, public Fence::Waiter, public std::enable_shared_from_this<Fenced> {
public:
    // Of a frame.
    Fenced(const std::uint8_t* bytes, std::size_t size, const Listener& listener) {
        job_.incoming = peek(bytes, size, listener);
        job_.call = call_of(job_.incoming, listener);
        job_.plain = !job_.incoming.method.empty() && !job_.incoming.prefixed;
    }
    // Of a task that came without one.
    Fenced() = default;
    // One that never ran says nothing of a downstream: its server was stopped.
    ~Fenced() override { permit_.release(Outcome::cancel); }

    Call& call() { return job_.call; }

    // Before it waits.
    void attach(std::shared_ptr<Runnable> task, std::shared_ptr<Workers> workers, std::shared_ptr<Workers> refusals) {
        task_ = std::move(task);
        workers_ = std::move(workers);
        refusals_ = std::move(refusals);
    }

    void granted(Permit permit) override {
        permit_ = std::move(permit);
        try {
            workers_->add(shared_from_this());
        } catch (const at::concurrency::IllegalStateException&) {  // they were stopped while this waited
            permit_.release(Outcome::cancel);
            refused("closed");
        }
    }

    void refused(const char* reason) override {
        job_.refused = reason;
        refusals_->add(shared_from_this());
    }

    void run() override {
        const Here<Job> here(job_here, job_);
        const Serving serving(permit_);
        task_->run();  // the server's task lets no exception out: its processor says how it went
        permit_.release(job_.outcome);
    }

private:
    std::shared_ptr<Runnable> task_;
    std::shared_ptr<Workers> workers_, refusals_;
    Job job_;
    Permit permit_;
};

// What this thread read last, for the task that its server adds next.
thread_local std::shared_ptr<Fenced> incoming;

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
            if (++sized_ == sizeof(length_) && length_ == 0) finish(nullptr, 0);
            return 1;
        }
        if (seen_ == 0 && size >= length_) {  // all of it, at once
            const std::uint32_t all = length_;
            finish(bytes, std::min<std::size_t>(all, kMostBytes));
            return all;
        }
        const std::uint32_t mine = std::min(size, length_ - seen_);
        const std::size_t wanted = std::min<std::size_t>(mine, kMostBytes - frame_.size());
        frame_.insert(frame_.end(), bytes, bytes + wanted);
        seen_ += mine;
        if (seen_ == length_) finish(frame_.data(), frame_.size());
        return mine;
    }

    void finish(const std::uint8_t* bytes, std::size_t size) {
        incoming = std::make_shared<Fenced>(bytes, size, listener_);
        frame_.clear();
        length_ = seen_ = 0;
        sized_ = 0;
    }

    const Listener listener_;
    std::vector<std::uint8_t> frame_;
    std::uint32_t length_ = 0, seen_ = 0;
    std::size_t sized_ = 0;
};

// Notes when the answer is that the method failed.
class Answer : public at::protocol::TProtocolDecorator {
public:
    Answer(std::shared_ptr<at::protocol::TProtocol> inner, Outcome& outcome) : TProtocolDecorator(std::move(inner)), outcome_(outcome) {}

    std::uint32_t writeMessageBegin_virt(const std::string& name, const at::protocol::TMessageType type, const std::int32_t sequence) override {
        if (type == at::protocol::T_EXCEPTION) outcome_ = Outcome::fail;
        return TProtocolDecorator::writeMessageBegin_virt(name, type, sequence);
    }

private:
    Outcome& outcome_;
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
    : fence_(std::move(fence)), workers_(std::make_shared<Workers>(workers)), refusals_(std::make_shared<Workers>(1)) {}

FencedThreadManager::~FencedThreadManager() { stop(); }

void FencedThreadManager::add(std::shared_ptr<Runnable> task, std::int64_t, std::int64_t expiration) {
    // Taken, not looked at: a task that comes without a frame has no key.
    auto fenced = std::move(incoming);
    if (workers_->phase() != Workers::Phase::started) throw at::concurrency::IllegalStateException("the thread manager has not been started, or was stopped");
    if (!fenced) fenced = std::make_shared<Fenced>();
    Call& call = fenced->call();
    const Time expires = expiration * kMillisecond;
    if (expires > 0 && (call.timeout == 0 || expires < call.timeout)) {
        call.timeout = expires;
        call.shortens = false;  // the server's own word
    }
    fenced->attach(std::move(task), workers_, refusals_);
    fence_->submit(call, std::move(fenced));
}

void FencedThreadManager::start() {
    for (const auto& w : {refusals_, workers_}) w->start();
}

// What the workers do not take any more, those who refuse answer.
void FencedThreadManager::stop() {
    for (const auto& w : {workers_, refusals_}) w->stop();
}

at::concurrency::ThreadManager::STATE FencedThreadManager::state() const {
    switch (workers_->phase()) {
        case Workers::Phase::fresh: return UNINITIALIZED;
        case Workers::Phase::started: return STARTED;
        case Workers::Phase::stopping: return JOINING;
        default: return STOPPED;
    }
}

std::shared_ptr<at::concurrency::ThreadFactory> FencedThreadManager::threadFactory() const { return workers_->factory(); }
void FencedThreadManager::threadFactory(std::shared_ptr<ThreadFactory> value) {
    for (const auto& w : {workers_, refusals_}) w->factory(value);
}
void FencedThreadManager::addWorker(std::size_t value) { workers_->resize(static_cast<std::ptrdiff_t>(value)); }
void FencedThreadManager::removeWorker(std::size_t value) { workers_->resize(-static_cast<std::ptrdiff_t>(value)); }
std::size_t FencedThreadManager::idleWorkerCount() const { return workers_->counts().idle; }
std::size_t FencedThreadManager::workerCount() const { return workers_->counts().threads; }
std::size_t FencedThreadManager::pendingTaskCount() const { return workers_->counts().pending + static_cast<std::size_t>(fence_->waiting()); }
std::size_t FencedThreadManager::totalTaskCount() const {
    const auto counts = workers_->counts();
    return counts.threads - counts.idle + pendingTaskCount();
}

bool FencedProcessor::process(std::shared_ptr<at::protocol::TProtocol> in, std::shared_ptr<at::protocol::TProtocol> out, void* connection) {
    // What the frame says has been read already, and the message is what the inner processor expects.
    if (!fence_ && job_here && !job_here->refused && std::exchange(job_here->plain, false))
        return serve({job_here->incoming.context, job_here->call.key, listener_, job_here->since}, nullptr, std::move(in), std::move(out), connection);

    const Clock::time_point since = job_here ? job_here->since : Clock::now();
    Incoming request;
    at::protocol::TMessageType type;
    std::int32_t sequence;
    in->readMessageBegin(request.method, type, sequence);
    request.context = split_name(request.method);
    if (!listener_.trusted) request.context = untrusted(std::move(request.context));
    if (job_here) request.context = job_here->incoming.context;

    Call call;
    if (job_here) call.key = job_here->call.key;
    if (fence_ || call.key.empty()) call = call_of(request, listener_);
    std::string refused = job_here && job_here->refused ? job_here->refused : "";
    std::optional<Permit> permit;
    if (fence_ && refused.empty()) {
        try {
            permit.emplace(fence_->acquire(call));
        } catch (const Shed& s) {
            refused = s.reason;
        }
    }
    if (!refused.empty()) {
        refuse(*in, *out, request.method, type, sequence, refused);
        return true;
    }
    in = std::make_shared<at::protocol::StoredMessageProtocol>(in, request.method, type, sequence);
    return serve({request.context, call.key, listener_, since}, permit ? &*permit : nullptr, std::move(in), std::move(out), connection);
}

// Has the inner processor serve a request, and tells its fence how that went.
bool FencedProcessor::serve(const Serves& serves, Permit* permit, std::shared_ptr<at::protocol::TProtocol> in, std::shared_ptr<at::protocol::TProtocol> out, void* connection) {
    std::optional<Serving> serving;
    if (permit) serving.emplace(*permit);
    const Here<const FencedProcessor::Serves> here(serves_here, serves);
    Outcome outcome = Outcome::ok;
    const auto tell = [&] {
        if (permit) permit->release(outcome);
        if (job_here) job_here->outcome = outcome;
    };
    try {
        const bool more = inner_->process(std::move(in), std::make_shared<Answer>(std::move(out), outcome), connection);
        tell();
        return more;
    } catch (const at::transport::TTransportException&) {
        outcome = Outcome::cancel;  // what a method throws becomes an answer; this is the client's connection
        tell();
        throw;
    } catch (...) {
        outcome = Outcome::fail;
        tell();
        throw;
    }
}

Context onward_here() {
    if (!serves_here) return {};
    const Time used = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - serves_here->since).count();
    Context context = serves_here->context;
    if (valid_name(serves_here->key)) context.path = serves_here->key;  // what an edge has chosen travels on
    if (!serves_here->listener.trusted) context.timeout = 0;  // whoever is called would believe it
    return onward(std::move(context), serves_here->listener.service, used);
}

}  // namespace temper::pathfence::thrift
