// The three scripts. Each walks the words that stand already to the command they name, skipping the
// values of options, and then offers what can stand next.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace hutch::cli {
namespace {

// In single quotes, as all three shells take it.
std::string quoted(std::string_view text, std::string_view quote_inside) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote_inside;
    } else {
      out += c;
    }
  }
  return out + "'";
}
std::string posix(std::string_view text) { return quoted(text, "'\\''"); }
std::string fish(std::string_view text) { return quoted(text, "\\'"); }

std::string first_sentence(const std::string& text) { return text.substr(0, text.find('\n')); }

// "file", "dir" or words, as the two older shells' functions get it in `kind` and `values`.
std::string assignment(const Completed& value) {
  switch (value.kind) {
    case Completed::Kind::nothing: return "kind=none";
    case Completed::Kind::files: return "kind=file";
    case Completed::Kind::directories: return "kind=dir";
    case Completed::Kind::words:
      return fmt::format("kind=words values=({})", fmt::join(value.words, " "));
    case Completed::Kind::settings:
      return fmt::format("kind=settings values=({})", fmt::join(value.words, " "));
  }
  return "kind=none";
}

// The body of a `case` over "PATH:OPTION" and "PATH:": what a value or an argument can be.
std::string value_cases(const std::vector<CompletedCommand>& commands) {
  std::string text;
  for (const CompletedCommand& command : commands) {
    for (const CompletedOption& option : command.options) {
      if (!option.takes_value) continue;
      for (const std::string& name : option.names) {
        text += fmt::format("    {}) {} ;;\n", posix(command.path + ":" + name),
                            assignment(option.value));
      }
    }
    text += fmt::format("    {}) {} ;;\n", posix(command.path + ":"), assignment(command.argument));
  }
  return text;
}

constexpr std::string_view kBashHead =
    R"(# bash completion of hutch, written by `hutch completion bash`.

# What can stand at $1: sets kind and values. Fails for an option that takes no value.
_hutch_value() {
  kind=none values=()
  case "$1" in
)";

constexpr std::string_view kBashTail = R"(    *) return 1 ;;
  esac
}

_hutch() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev= where= word i skip= only_arguments=
  local kind commands options
  local -a values
  COMPREPLY=()
  # Bash takes "--option=value" apart at the "=".
  if [[ $cur == = ]]; then
    cur= prev=${COMP_WORDS[COMP_CWORD-1]}
  elif [[ $COMP_CWORD -ge 2 && ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  else
    prev=${COMP_WORDS[COMP_CWORD-1]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ -n $skip ]]; then
      skip=
      [[ $word == = ]] && skip=1
      continue
    fi
    case $word in
      --) only_arguments=1; break ;;
      =) skip=1 ;;
      -*) _hutch_value "$where:$word" && skip=1 ;;
      *) _hutch_command "${where:+$where }$word" && where=${where:+$where }$word ;;
    esac
  done
  _hutch_command "$where"
  if [[ -z $only_arguments && $prev == -* ]] && _hutch_value "$where:$prev"; then
    :
  elif [[ -z $only_arguments && $cur == -* ]]; then
    kind=words values=($options)
  else
    _hutch_value "$where:"
    [[ -n $commands ]] && kind=words values=($commands)
  fi
  case $kind in
    words) COMPREPLY=($(compgen -W "${values[*]}" -- "$cur")) ;;
    settings)
      compopt -o nospace 2>/dev/null
      COMPREPLY=($(compgen -S = -W "${values[*]}" -- "$cur"))
      ;;
    file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      ;;
    dir)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      ;;
  esac
}
complete -F _hutch hutch
)";

constexpr std::string_view kZshHead = R"(#compdef hutch
# zsh completion of hutch, written by `hutch completion zsh`.

# What can stand at $1: sets kind and values. Fails for an option that takes no value.
_hutch_value() {
  kind=none values=()
  case "$1" in
)";

constexpr std::string_view kZshTail = R"(    *) return 1 ;;
  esac
}

_hutch() {
  local cur=${words[CURRENT]} where= word skip= only_arguments= kind=
  local -a values commands options
  local i
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    if [[ -n $skip ]]; then
      skip=
      continue
    fi
    case $word in
      --) only_arguments=1; break ;;
      --*=*) ;;
      -*) _hutch_value "$where:$word" && skip=1 ;;
      *) _hutch_command "${where:+$where }$word" && where=${where:+$where }$word ;;
    esac
  done
  _hutch_command "$where"
  if [[ -n $skip ]]; then
    _hutch_value "$where:${words[CURRENT-1]}"
  elif [[ -z $only_arguments && $cur == --*=* ]] && _hutch_value "$where:${cur%%=*}"; then
    compset -P 1 '*='
  elif [[ -z $only_arguments && $cur == -* ]]; then
    _describe -o option options
    return
  elif (( $#commands )); then
    _describe command commands
    return
  else
    _hutch_value "$where:"
  fi
  case $kind in
    words) compadd -a values ;;
    settings) compadd -q -S = -a values ;;
    file) _files ;;
    dir) _files -/ ;;
  esac
}

# As a file of $fpath this is the function's body; sourced, it has to say what it is for.
if [[ ${funcstack[1]} == _hutch ]]; then
  _hutch "$@"
else
  compdef _hutch hutch
fi
)";

// One word of _describe: the name, and behind a colon what it means.
std::string described(std::string_view name, const std::string& about) {
  std::string escaped;
  for (const char c : name) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
  return posix(escaped + ":" + first_sentence(about));
}

std::string about_of(const std::vector<CompletedCommand>& all, const CompletedCommand& parent,
                     const std::string& name) {
  const std::string path = parent.path.empty() ? name : parent.path + " " + name;
  for (const CompletedCommand& one : all) {
    if (one.path == path) return one.about;
  }
  return "";
}

std::string fish_value(const Completed& value) {
  switch (value.kind) {
    case Completed::Kind::nothing: return "-x";
    case Completed::Kind::files: return "-r -F";
    case Completed::Kind::directories: return "-x -a '(__fish_complete_directories)'";
    case Completed::Kind::words:
      return "-x -a " + fish(fmt::format("{}", fmt::join(value.words, " ")));
    case Completed::Kind::settings:
      return "-x -a " + fish(fmt::format("{}=", fmt::join(value.words, "= ")));
  }
  return "-x";
}

std::string fish_option(const std::string& condition, const CompletedOption& option) {
  std::string line = "complete -c hutch " + condition;
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.takes_value) line += " " + fish_value(option.value);
  return line + " -d " + fish(first_sentence(option.about)) + "\n";
}

constexpr std::string_view kFishTail = R"(
# Whether the words that stand already name exactly this command.
function __hutch_at
    set -l words (commandline -opc)
    set -l where
    set -l skip
    for word in $words[2..-1]
        if test -n "$skip"
            set skip
            continue
        end
        switch $word
            case --
                break
            case '--*=*'
            case '-*'
                contains -- "$where:$word" $__hutch_valued; and set skip 1
            case '*'
                set -l next (string trim -- "$where $word")
                contains -- "$next" $__hutch_commands; and set where "$next"
        end
    end
    test "$where" = "$argv"
end

complete -c hutch -f
)";

}  // namespace

std::string bash_completion(const std::vector<CompletedCommand>& commands) {
  std::string text(kBashHead);
  text += value_cases(commands);
  std::string known;
  for (const CompletedCommand& command : commands) {
    std::vector<std::string> options;
    for (const CompletedOption& option : command.options) {
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
    known += fmt::format("    {}) commands={} options={} ;;\n", posix(command.path),
                         posix(fmt::format("{}", fmt::join(command.commands, " "))),
                         posix(fmt::format("{}", fmt::join(options, " "))));
  }
  std::string tail(kBashTail);
  const std::string function = fmt::format(
      "\n# The command $1: sets commands and options. Fails where there is none.\n"
      "_hutch_command() {{\n  case \"$1\" in\n{}    *) return 1 ;;\n  esac\n}}\n",
      known);
  return text + tail.insert(tail.find("\n_hutch()"), function);
}

std::string zsh_completion(const std::vector<CompletedCommand>& commands) {
  std::string text(kZshHead);
  text += value_cases(commands);
  std::string known;
  for (const CompletedCommand& command : commands) {
    std::vector<std::string> below;
    for (const std::string& name : command.commands) {
      below.push_back(described(name, about_of(commands, command, name)));
    }
    std::vector<std::string> options;
    for (const CompletedOption& option : command.options) {
      for (const std::string& name : option.names) {
        options.push_back(described(name, option.about));
      }
    }
    known += fmt::format("    {}) commands=({})\n      options=({}) ;;\n", posix(command.path),
                         fmt::join(below, " "), fmt::join(options, " "));
  }
  std::string tail(kZshTail);
  const std::string function = fmt::format(
      "\n# The command $1: sets commands and options. Fails where there is none.\n"
      "_hutch_command() {{\n  case \"$1\" in\n{}    *) return 1 ;;\n  esac\n}}\n",
      known);
  return text + tail.insert(tail.find("\n_hutch()"), function);
}

std::string fish_completion(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> paths;
  std::vector<std::string> valued;
  std::string lines;
  for (const CompletedCommand& command : commands) {
    if (!command.path.empty()) paths.push_back(fish(command.path));
    const std::string condition = "-n " + fish("__hutch_at " + fish(command.path));
    for (const std::string& name : command.commands) {
      lines += fmt::format("complete -c hutch {} -a {} -d {}\n", condition, name,
                           fish(first_sentence(about_of(commands, command, name))));
    }
    for (const CompletedOption& option : command.options) {
      lines += fish_option(condition, option);
      if (!option.takes_value) continue;
      for (const std::string& name : option.names) {
        valued.push_back(fish(command.path + ":" + name));
      }
    }
    const Completed& argument = command.argument;
    if (argument.kind == Completed::Kind::files) {
      lines += fmt::format("complete -c hutch {} -F\n", condition);
    } else if (argument.kind != Completed::Kind::nothing) {
      lines += fmt::format("complete -c hutch {} {}\n", condition, fish_value(argument));
    }
  }
  return fmt::format(
      "# fish completion of hutch, written by `hutch completion fish`.\n\n"
      "set -g __hutch_commands {}\nset -g __hutch_valued {}\n{}{}",
      fmt::join(paths, " "), fmt::join(valued, " "), kFishTail, lines);
}

}  // namespace hutch::cli
