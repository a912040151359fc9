# Of data and train, the files that the tsan preset builds, and of their cases those in which threads
# meet: others take minutes and show nothing more.
set(hearth_thread_files_data row_cache rows_packed run_rows)
set(hearth_thread_cases_data "*on the number of threads" "rows that outgrow*"
    "the thread that read rows*" "a signal ends*" "processes that start at once*" "a second start*"
    "long packed files*")

set(hearth_thread_files_train aptmoe background_save device_runs expert_domains expert_parallel
    paced_runs ranks same_bits shrinking_budget state_places state_writes static_policy stop
    stream_teams text_samples training travelling_policies zebra zebra_ranks)
set(hearth_thread_cases_train "")
foreach(name aptmoe devices "expert domains" "expert ranks" "hot experts" "host nodes" "paced runs"
             ranks samples "same bits" shrink "state places" static stop "stream teams" travelling zebra)
  list(APPEND hearth_thread_cases_train "\"${name}*\"~[.long]")
endforeach()
list(APPEND hearth_thread_cases_train
  [=["training*"~"training: evaluation*"~"training: layers for multi*"~[.long]]=]
  [=["background save*"~"background save: an update that did not wait*"~[.long]]=]
  [=["memory that changes during a save*"]=])
