# Lets the binary HUTCH write its manual pages into MAN and its completions into COMPLETIONS.
file(REMOVE_RECURSE ${MAN} ${COMPLETIONS})
file(MAKE_DIRECTORY ${COMPLETIONS})
execute_process(COMMAND ${HUTCH} docs man ${MAN} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(shell bash zsh fish)
  execute_process(COMMAND ${HUTCH} completion ${shell}
    OUTPUT_FILE ${COMPLETIONS}/hutch.${shell} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
