// SPDX-License-Identifier: Apache-2.0
// Events. algorithm.md: "Events", "Windows", "Fan-out", "Operation".
#include "class.h"

namespace temper::pathfence {

Core::Core(const Config& config, Time now) : config_(checked(config)), said_off_(config.off), now_(now), window_start_(now), buckets_(config_.unknown_buckets) {
    levels_.fill(kNever);
    for (std::int64_t i = 0; i < buckets_; ++i) {
        ClassConfig k;
        k.name = "~u" + std::to_string(i);
        k.weight = kDefaultWeight;
        k.target = config_.target;
        Class& c = add_class(k);
        c.unknown = true;
        c.limit = unknown_limit();
        c.seen = kNever;
    }
    configure();
}

Core::~Core() = default;

Core::Class& Core::add_class(const ClassConfig& k) {
    auto c = std::make_unique<Class>();
    c->index = static_cast<std::int64_t>(classes_.size());
    c->own_label.name = k.name;
    c->label = &c->own_label;
    c->weight = k.weight;
    c->target = k.target;
    c->seen = c->last_turn = c->window.touched = now_;
    c->limit = k.limit > 0 ? std::min(k.limit, config_.workers) : config_.workers;
    c->hold = k.hold;
    classes_.push_back(std::move(c));
    return *classes_.back();
}

// Puts config_ in force; the classes of an earlier one stay, without keys.
void Core::configure() {
    configured_.clear();
    for (const auto& k : config_.classes) {
        Class* c = named(k.name);
        if (!c) c = &add_class(k);
        c->weight = k.weight;
        c->aim(k.target);
        for (const auto& key : k.keys) configured_[key] = c;
    }
    each_limited([this](Limited& l) { l.limit = std::min(l.limit, config_.workers); });
    for (auto& c : classes_) {
        if (c->unknown) c->limit = unknown_limit();
        if (c->unknown || c->learned) c->aim(config_.target);
    }
    share_out();
}

Core::Class* Core::named(const std::string& name) const {
    for (const auto& c : classes_)
        if (c->label->name == name) return c.get();
    return nullptr;
}

std::int64_t Core::unknown_limit() const { return std::max<std::int64_t>(1, config_.workers / 8); }

void Core::empty_samples() {
    for (auto& c : classes_) c->touch(now_);
    each_limited([](Limited& l) { l.sample = {}; });
}

// All classes, then all groups.
template <class F>
void Core::each_limited(F f) {
    for (auto& c : classes_) f(*c);
    for (auto& g : groups_) f(*g);
}

const Core::Decisions& Core::reload(Time now, const Config& wanted, bool& refused) {
    begin(now);
    refused = true;
    Config config;
    try {
        config = checked(wanted);
    } catch (const ConfigError&) {
        return decisions_;
    }
    std::size_t added = 0;
    for (const auto& k : config.classes) added += !named(k.name);
    if (classes_.size() - static_cast<std::size_t>(buckets_) - learned_classes() + added > kMaxNamed) return decisions_;
    refused = false;
    empty_samples();
    each_limited([&](Limited& l) {
        if (l.limit == config_.workers) l.limit = config.workers;
    });
    if (config.off == said_off_)
        config.off = config_.off;
    else
        said_off_ = config.off;
    config_ = std::move(config);
    configure();
    pump();
    return decisions_;
}

const Core::Decisions& Core::off(Time now, bool off) {
    begin(now);
    config_.off = off;
    empty_samples();
    pump();
    return decisions_;
}

const Core::Decisions& Core::tick(Time now) {
    begin(now);
    if (!config_.off)
        for (auto& c : classes_) sweep(*c);
    pump();
    return decisions_;
}

const Core::Decisions& Core::arrive(Time now, const Arrival& in) {
    begin(now);
    if (requests_.count(in.id)) return decisions_;
    if (Request* p = in.parent ? running(in.parent) : nullptr) {
        inherit(in, p);
        return decisions_;
    }
    Class& c = class_of(in.key);
    Request* r = &add_request(in.id, c);
    r->order = ++order_;
    r->key = in.key;
    r->arrived = now_;
    r->deadline = in.deadline ? in.deadline : now_ + c.target;
    if (in.deadline && in.shortens) {
        r->expires = now_ + c.target;
        r->deadline = std::min(r->deadline, r->expires);
    }
    r->depth = std::max<std::int64_t>(in.depth, 0);
    ++waiting_;
    arrived(c);
    if (r->depth > kMaxDepth) {
        shed(r, "depth");
        return decisions_;
    }
    if (r->depth > 0) {
        levels_[static_cast<std::size_t>(r->depth)] = now_;
        enqueue_nested(r);
    } else {
        enqueue(c, r);
    }
    note_demand(c);
    pump();
    return decisions_;
}

// It is on a thread already, so it waits for nothing.
const Core::Decisions& Core::resume(Time now, std::int64_t id, const std::string& key) {
    begin(now);
    if (requests_.count(id)) return decisions_;
    Request& r = add_request(id, class_of(key));
    r.order = ++order_;
    r.key = key;
    r.arrived = now_;
    r.deadline = now_ + r.of->target;
    ++waiting_;
    grant(&r, false, "resumed");
    return decisions_;
}

Core::Request* Core::running(std::int64_t id) const {
    const auto it = requests_.find(id);
    return it == requests_.end() || it->second->waits ? nullptr : it->second.get();
}

Core::Request& Core::add_request(std::int64_t id, Class& c) {
    Request* r;
    if (spare_.empty()) {
        r = requests_.emplace(id, std::make_unique<Request>()).first->second.get();
    } else {
        auto node = std::move(spare_.back());
        spare_.pop_back();
        node.key() = id;
        r = node.mapped().get();
        requests_.insert(std::move(node));
    }
    r->reset(id, c);
    return *r;
}

void Core::remove_request(std::int64_t id) {
    auto node = requests_.extract(id);
    if (spare_.size() < kMaxSpare) spare_.push_back(std::move(node));
}

// Runs a part of a request on that request's permit.
void Core::inherit(const Arrival& in, Request* parent) {
    while (parent->parent) parent = parent->parent;
    ++parent->sharers;
    Request& r = add_request(in.id, *parent->of);
    r.waits = false;
    r.parent = parent;
    grant_decision(r, false, "inherited");
}

const Core::Decisions& Core::done(Time now, std::int64_t id, Outcome outcome) {
    begin(now);
    const auto it = requests_.find(id);
    if (it == requests_.end()) return decisions_;
    Request* owner = it->second.get();
    if (owner->waits) {
        unqueue(owner);
        --waiting_;
        remove_request(id);
        pump();
        return decisions_;
    }
    if (owner->done) return decisions_;
    if (owner->parent) {
        owner = owner->parent;
        remove_request(id);
    } else {
        owner->done = true;
        owner->outcome = outcome;
    }
    if (--owner->sharers == 0) {
        release(*owner);
        remove_request(owner->id);
        pump();
    }
    return decisions_;
}

void Core::release(Request& r) {
    Class& c = *r.of;
    c.touch(now_);
    hold(c, -1);
    turned(c);
    if (r.outcome == Outcome::cancel && now_ > std::max(r.deadline, r.expires)) ++c.missed;  // its client has waited in vain
    if (r.outcome == Outcome::cancel || hurried(r)) return;
    ++turns_;
    // What is over in less than half of the usual time without success was no work like the others'.
    if (r.outcome == Outcome::light && 2 * (now_ - r.granted) < c.hold)
        ++c.window.light;
    else
        finished(c, r);
    if (r.outcome != Outcome::fail) learn_key(r.key);
}

// Whether a request has ended as it did because a peer that is not trusted has set it a time that was too short: late, or
// failed, as what it calls does when the time is over. Such a peer could make a path look slow.
bool Core::hurried(const Request& r) const {
    if (now_ > r.expires) return false;
    const bool over = now_ > r.deadline;
    if (r.outcome == Outcome::fail) return over || 8 * (r.deadline - now_) <= r.deadline - r.arrived;
    return r.outcome == Outcome::ok && over;
}

void Core::finished(Class& c, const Request& r) {
    const bool failed = r.outcome == Outcome::fail, missed = !failed && now_ > r.deadline;
    c.failed += failed;
    c.missed += missed;
    if (r.outcome == Outcome::ok && !c.succeeded) {
        c.succeeded = true;
        c.holds = {};
    }
    c.finished(now_, r);
    if (c.group) c.group->finished(now_, r);
    judge(c, !failed && !missed);
}

// Takes permits, or gives them back.
void Core::hold(Class& c, std::int64_t permits) {
    c.in_flight += permits;
    if (c.group) c.group->in_flight += permits;
    in_flight_ += permits;
}

// Brings the clock forward, and closes a window that is over. A clock that goes back stands still. Where nothing is heard
// for long, not even who ticks, it is the process that stands still.
void Core::begin(Time now) {
    decisions_.clear();
    const Time silence = std::max<Time>(0, now - now_);
    heard_ += std::min(silence, config_.stall / 2);
    if (silence > config_.window / 2) stood_ = true;
    now_ += silence;
    const Time length = now_ - window_start_;
    if (length < config_.window) return;
    close_window(length);
    window_start_ = now_;
}

void Core::grant_decision(const Request& r, bool lent, const char* reason) {
    decisions_.push_back({Decision::Kind::grant, r.id, r.of->label, lent, reason, 0});
}

std::vector<ClassState> Core::states() const {
    std::vector<ClassState> out;
    auto keys = shown_keys();
    for (const auto& c : classes_) {
        if (c->unknown && c->granted + c->shed == 0 && c->queue.empty()) continue;
        const bool together = c->group && c->group->limit < c->limit;
        out.push_back({c->label->name, together ? c->group->limit : c->limit, c->reserve, c->in_flight, c->queue.size(), std::max<std::int64_t>(0, c->in_flight - c->reserve),
                       c->granted, c->shed, c->missed, c->failed, c->knee, c->hold, together ? "together" : c->reason, std::move(keys[c.get()])});
    }
    return out;
}

}  // namespace temper::pathfence
