// The groups of the option table, in the order of the help. Each group has a source file, for its
// options.
#pragma once

#include <vector>

#include "options/option_table.h"

namespace hearth {

void add_what(std::vector<Option>& table);
void add_lora(std::vector<Option>& table);
void add_batch(std::vector<Option>& table);
void add_optimizer(std::vector<Option>& table);
void add_data(std::vector<Option>& table);
void add_run(std::vector<Option>& table);
void add_state(std::vector<Option>& table);
void add_generation(std::vector<Option>& table);
void add_simulation(std::vector<Option>& table);
void add_output(std::vector<Option>& table);

// Common sets of commands.
inline constexpr CommandSet kTraining{Command::train, Command::plan};
inline constexpr CommandSet kTrainingOrProfile{Command::train, Command::plan, Command::profile};
inline constexpr CommandSet kOnData{Command::train, Command::plan, Command::eval};
inline constexpr CommandSet kRows{Command::train, Command::plan, Command::eval, Command::tokenize};
inline constexpr CommandSet kPrompts{Command::train, Command::plan, Command::eval,
                                     Command::tokenize, Command::generate};
inline constexpr CommandSet kModel{Command::train, Command::plan, Command::eval, Command::generate,
                                   Command::chat};
inline constexpr CommandSet kModelOrProfile{Command::train,    Command::plan, Command::eval,
                                            Command::generate, Command::chat, Command::profile};
/// Commands that write texts.
inline constexpr CommandSet kWriting{Command::generate, Command::chat};
inline constexpr CommandSet kIdleOutsideTraining{Command::eval, Command::generate};
inline constexpr CommandSet kAll{
    Command::train,   Command::eval,     Command::generate, Command::chat,    Command::plan,
    Command::inspect, Command::tokenize, Command::export_,  Command::verify,  Command::init,
    Command::report,  Command::simulate, Command::doctor,   Command::profile, Command::migrate};

inline constexpr int64_t kMaxSteps = 99'999'999;  // the directory of a saved state has eight digits

}  // namespace hearth
