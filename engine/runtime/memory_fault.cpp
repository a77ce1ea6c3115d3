#include "engine/runtime/memory_fault.hpp"

#include <utility>

#include "engine/runtime/session_listener.hpp"

namespace uptempo {

MemoryFaultListener::MemoryFaultListener(const Agent& agent, Function function)
    : listener_(std::make_unique<detail::SessionListener>(
          Session::current(),
          Session::Listener{.on_fault = [agent = agent.handle(), function = std::move(function)](
                                            const Session::MemoryFault& fault) {
            if (fault.agent.handle != agent.handle) return false;
            function(fault.status, fault.text);
            return true;
          }})) {}

MemoryFaultListener::~MemoryFaultListener() = default;

}  // namespace uptempo
