//! The list of all cases, and of all places where they are run.

/// Hands every place where the cases are run to the macro `$each`, as `name Subject Engine,`. The
/// subjects are types of the tests.
#[macro_export]
macro_rules! for_each_conformance_subject {
    ($each:ident) => {
        $each! {
            in_memory InMemory Sqlite,
            on_files OnFiles Sqlite,
            on_server OnServer Postgres,
        }
    };
}

/// Hands every case to the macro `$each`, as `group { case, case, … } group { … }`.
///
/// This is the only list of them. A case that is missing here is a function without a caller, which
/// the compiler reports.
#[macro_export]
macro_rules! for_each_conformance_case {
    ($each:ident) => {
        $each! {
            accounts {
                an_account_reads_back_exactly_as_it_was_written,
                changing_an_account_keeps_whether_it_is_the_default,
                at_most_one_account_is_the_default,
                changes_of_accounts_are_recorded_without_their_keys,
            }
            beads {
                a_bead_reads_back_exactly_as_it_was_written,
                a_bead_exists_only_under_its_exact_id,
                a_bead_is_found_by_its_alias,
                a_taken_id_is_refused_and_the_bead_there_stays,
                a_state_that_contradicts_itself_is_refused,
                a_new_bead_is_announced_with_what_it_is,
                a_change_is_announced_with_every_field_that_differs,
                every_field_of_a_bead_can_change_and_is_listed,
                saving_what_has_not_changed_writes_nothing,
                saving_leaves_alone_what_is_derived,
                touching_moves_the_time_of_change_forward_only,
                deleting_a_bead_deletes_its_labels_comments_and_edges,
                a_deleted_id_can_be_used_again_without_its_past,
                ids_are_found_by_a_part_of_them_taken_literally,
                ids_containing_a_part_are_at_most_two_hundred,
                every_event_names_the_actor_of_the_change,
                a_bead_that_is_gone_cannot_be_changed,
            }
            blocking {
                a_bead_that_is_not_over_blocks_what_depends_on_it,
                a_close_unblocks_its_dependents_in_the_same_transaction,
                a_close_counts_as_done_unless_it_failed,
                after_a_failure_dependents_wait_until_it_is_closed_again,
                an_outcome_that_turns_into_a_failure_blocks_again,
                a_failed_bead_is_listed_with_those_that_wait_for_it,
                a_conditional_edge_is_satisfied_by_any_close,
                reopening_blocks_again,
                a_pinned_bead_never_blocks,
                edges_of_other_types_never_block,
                an_absent_target_blocks_once_it_appears,
                retyping_an_edge_blocks_and_unblocks,
                removing_an_edge_unblocks,
                deleting_a_blocker_unblocks,
                deleting_a_blocked_bead_does_not_announce_it_as_unblocked,
                a_bead_waits_for_the_last_of_its_blockers,
                one_close_unblocks_everything_that_waited_for_it,
                a_bead_that_is_over_is_not_announced_as_unblocked,
                blockers_are_split_into_open_and_failed,
                the_edges_of_a_new_bead_block_it_in_any_order_of_arrival,
            }
            check_runs {
                a_run_of_a_check_reads_back_as_it_was_written,
                only_a_pass_of_the_same_check_and_key_is_found,
                flaky_runs_are_found_newest_first,
            }
            comments {
                comments_read_back_oldest_first,
                the_same_comment_is_not_added_twice,
                a_comment_is_announced_only_when_asked_and_when_new,
                a_bead_that_is_not_there_gets_no_comment,
            }
            contexts {
                a_context_reads_back_exactly_as_it_was_written,
                a_bead_has_one_open_context,
                open_contexts_and_convoys_of_many_beads_are_found_at_once,
                numbers_are_given_in_line_and_never_again,
                changes_of_a_context_are_events_of_its_bead,
                lanes_follow_every_reason_that_holds_a_bead,
                the_types_that_a_rig_takes_depend_on_its_executor,
                every_operation_that_changes_a_fact_evaluates_the_contexts_it_concerns,
                the_line_read_within_a_transaction_sees_its_changes,
                lanes_are_told_apart_by_what_admission_looks_at,
                a_start_that_failed_is_put_off_until_its_date,
                labels_follow_the_last_context,
                a_label_that_was_also_given_is_there_once,
                contexts_are_listed_as_beads_on_request,
                a_bead_with_the_name_of_a_context_is_the_only_one_shown,
                traces_of_older_queues_are_found,
            }
            convoys {
                a_change_of_a_member_marks_its_containers_with_their_counts,
                a_landing_is_counted_and_told,
                members_are_counted_as_they_close_and_open,
                parts_of_an_epic_are_counted,
                members_that_join_and_leave_are_counted,
                a_convoy_that_comes_in_is_counted_and_stays_as_it_was,
                nothing_of_a_convoy_that_is_paused_is_awake,
                a_convoy_with_a_cap_has_lanes_of_its_own,
                a_closed_convoy_holds_up_no_bead_and_a_reopened_one_is_as_it_was,
                tracked_beads_that_are_not_scheduled_are_found,
            }
            counts {
                beads_are_counted_by_each_group,
                counts_obey_the_filter,
                an_empty_store_has_empty_statistics,
                statistics_count_what_is_not_ephemeral,
                an_epic_whose_parts_are_all_over_could_be_closed,
                the_longest_life_there_can_be_does_not_break_the_statistics,
            }
            dependencies {
                an_edge_reads_back_exactly_as_it_was_written,
                an_edge_is_added_then_the_same_then_changed,
                an_edge_that_comes_by_an_import_is_told_as_one,
                edges_are_listed_from_both_ends_in_order,
                a_removed_edge_is_gone_and_removing_it_again_is_nothing,
                an_edge_may_point_to_a_bead_that_is_not_there,
                an_edge_of_a_bead_that_is_not_there_is_refused,
                a_bead_cannot_depend_on_itself,
                only_edges_that_can_block_count_as_blocking,
                a_bead_knows_its_parts_and_what_it_is_a_part_of,
                a_wait_for_a_parent_names_its_unfinished_children,
                edges_are_followed_to_their_ends,
                the_edges_of_a_new_bead_are_written_in_one_go,
                a_new_bead_with_two_edges_to_the_same_target_is_refused,
            }
            events {
                the_history_of_several_beads_is_read_at_once,
                an_empty_store_has_no_events,
                numbers_are_gapless_and_in_order,
                a_write_that_fails_leaves_no_event_and_no_gap,
                a_write_that_changes_nothing_leaves_no_event,
                an_event_names_actor_time_and_rig,
                events_are_read_in_pages,
                events_that_a_filter_skips_are_not_read_again,
                a_limit_of_nothing_gives_nothing,
                a_place_beyond_the_end_is_kept,
                the_latest_events_come_oldest_first,
                events_are_filtered_by_each_field,
                the_log_outlives_what_it_tells_about,
                old_events_go_from_the_beginning_and_the_last_one_stays,
            }
            filters {
                a_plain_list_shows_what_is_current,
                by_id,
                by_status,
                by_being_blocked,
                by_rig,
                by_type,
                by_flags,
                by_priority,
                by_assignee,
                by_labels,
                by_parent,
                by_the_times_of_a_bead,
                by_being_put_off,
                by_being_overdue,
                by_outcome,
                by_several_fields_at_once,
                an_unset_time_is_neither_before_nor_after,
            }
            followers {
                a_follower_misses_no_event_and_sees_none_twice,
                no_reader_sees_a_change_without_its_event_or_an_event_without_its_change,
                an_acknowledged_write_is_seen_by_every_handle,
            }
            groups {
                a_ticket_is_answered_when_the_write_is_there_for_all,
                in_a_group_each_job_stands_or_falls_alone,
                the_first_job_of_a_store_may_panic,
                no_answer_comes_before_the_commit,
                jobs_of_one_submitter_are_written_in_order,
                many_submitters_lose_nothing,
                submitted_and_plain_writes_get_along,
                a_write_whose_ticket_is_dropped_is_written_all_the_same,
                failed_jobs_leave_no_gap_across_groups,
                a_job_sees_what_the_jobs_before_it_did_and_nothing_of_those_that_failed,
            }
            identity {
                a_free_id_is_the_first_unused_one,
                ids_grow_longer_as_their_prefix_fills_up,
                each_prefix_fills_up_for_itself_and_children_do_not_count,
                children_are_numbered_from_one,
                the_number_of_a_deleted_child_is_not_given_again,
                the_number_of_a_deleted_imported_child_is_not_given_again,
                imported_children_keep_their_numbers,
                a_number_that_was_not_used_is_not_lost,
                absurd_numbers_of_imported_children_do_no_harm,
            }
            labels {
                labels_are_sorted_and_remember_in_which_order_they_came,
                a_label_is_there_or_not_but_never_twice,
                a_label_is_announced_only_when_asked,
                labels_are_told_apart_by_every_letter,
                a_bead_that_is_not_there_gets_no_label,
            }
            merge_requests {
                a_request_reads_back_as_it_was_written,
                a_state_is_saved_only_over_the_state_it_follows,
                the_time_of_a_state_stays_while_the_state_does,
                requests_are_listed_page_by_page_the_newest_first,
                a_bead_has_one_open_request,
                a_line_has_the_open_requests_of_its_branch,
                requests_in_review_are_counted,
                a_blocker_with_an_open_request_of_work_is_accepted,
                a_candidate_is_on_its_way_until_it_is_over,
                a_queue_has_one_builder_at_a_time,
                a_queue_is_paused_and_its_target_red_until_told_otherwise,
                reviews_are_kept_in_their_order,
                a_pull_request_is_followed_with_its_tips,
                what_a_repair_answers_is_kept_once,
            }
            messages {
                a_message_reads_back_exactly_as_it_was_sent,
                a_message_is_delivered_once_and_seen_once,
                a_seen_message_counts_as_delivered,
                an_address_gets_its_own_messages_in_order,
                a_nudge_waits_until_it_is_delivered_or_seen,
                an_escalation_is_found_until_it_is_read,
                messages_that_were_read_long_ago_go_and_no_others,
                a_message_that_is_undone_leaves_no_gap,
            }
            orders {
                every_order_and_its_reverse,
                the_default_is_most_urgent_then_newest_first,
                the_hybrid_order_puts_the_young_first_by_urgency,
                the_hybrid_order_without_a_clock_is_oldest_first,
                a_limit_cuts_the_end_off,
                ids_with_numbers_come_in_their_natural_order,
                ties_are_broken_by_id_in_every_order,
                texts_are_ordered_by_their_bytes,
            }
            outbox {
                a_notice_is_written_once_for_each_channel,
                notices_are_no_events,
                a_writer_knows_how_many_notices_it_has_written,
                due_notices_are_taken_oldest_first_and_once,
                a_time_that_no_clock_can_have_meant_is_due,
                a_failed_notice_waits_and_is_given_up_in_the_end,
                a_late_sender_does_not_undo_the_work_of_others,
                of_several_that_look_one_takes_a_notice,
            }
            parks {
                a_park_reads_back_exactly_as_it_was_written,
                a_run_finds_the_parks_of_its_own_means,
                a_trial_is_written_down_beside_the_rest,
                a_ramp_is_told_as_the_end_of_a_limit_and_its_own_end_is_not,
                parking_and_its_end_are_told_and_suspicion_is_not,
                a_forgiven_attempt_wakes_its_context,
            }
            convoy_status {
                answers_about_many_beads_equal_the_answers_about_each,
                the_open_members_of_a_convoy_are_read_at_once,
                the_durations_of_good_runs_are_read_newest_first,
                member_rows_come_in_the_order_that_was_asked_for,
            }
            board {
                each_bead_is_in_the_lane_where_it_stands,
                a_bead_that_does_not_start_is_not_ready,
                a_lane_is_narrowed_by_rig_and_convoy,
                a_long_lane_shows_its_first_beads_and_counts_all,
                runs_are_listed_page_by_page_the_newest_first,
                spending_is_summed_by_hour_and_by_run,
            }
            queries {
                each_condition_admits_what_it_says,
                a_negation_admits_exactly_the_rest,
                ready_means_what_it_means_elsewhere,
                a_query_narrows_what_the_other_fields_admit,
                a_select_sees_the_tables_that_others_know,
                a_select_changes_nothing,
            }
            races {
                the_last_of_several_closes_unblocks_and_only_the_last,
                a_close_beside_a_new_dependency_blocks_no_bead,
                of_two_crossing_dependencies_one_is_a_circle,
                one_of_many_takes_a_bead,
                no_two_writers_get_the_same_id,
            }
            readiness {
                only_open_beads_are_ready,
                a_blocked_bead_becomes_ready_when_its_last_blocker_is_done,
                a_deferred_bead_wakes_when_its_date_has_come,
                a_woken_bead_takes_its_place_in_the_order,
                the_parts_of_a_deferred_bead_wait_with_it,
                a_type_that_is_not_work_is_ready_only_on_request,
                ephemeral_beads_are_ready_only_when_asked_for,
                references_are_never_ready_and_templates_are_like_any_bead,
                other_fields_narrow_what_is_ready,
            }
            requests {
                a_request_is_remembered_under_its_exact_name,
                remembering_a_request_is_no_event,
                a_name_is_taken_once,
                deleting_a_bead_forgets_its_requests,
                of_two_that_ask_at_once_one_makes_the_bead,
            }
            rigs {
                a_rig_reads_back_exactly_as_it_was_written,
                an_id_belongs_to_the_rig_with_the_longest_prefix,
                a_new_rig_adopts_the_beads_of_its_prefix,
                a_bead_that_has_a_rig_is_not_adopted,
                a_rig_with_a_taken_name_or_prefix_is_refused,
                the_state_of_a_rig_changes_with_an_event,
                each_change_of_a_rig_is_an_event,
                removing_a_rig_keeps_its_beads,
                a_rig_is_added_and_removed_with_an_event,
                the_beads_of_a_rig_are_counted_by_status,
                events_of_a_bead_name_its_rig,
            }
            rows {
                a_row_shows_what_stands_around_a_bead,
                a_bead_on_its_own_has_an_empty_row,
                rows_come_in_the_order_asked_for_without_the_absent,
                rows_are_read_in_pages_of_any_number,
            }
            run_outputs {
                the_end_of_an_output_is_kept_until_it_is_old,
            }
            runs {
                a_run_reads_back_exactly_as_it_was_written,
                a_bead_has_one_live_run,
                a_named_place_has_one_live_run_unless_it_is_a_persons,
                an_agent_that_asks_for_work_has_one_run_in_progress,
                a_run_is_taken_once_and_ends_once,
                a_step_of_a_run_is_done_once_and_told,
                the_runs_of_a_deleted_bead_go_with_it,
                a_status_that_contradicts_a_live_run_is_noticed,
                a_town_rests_while_nothing_is_scheduled_live_or_left,
                a_pause_names_actor_and_time_and_is_recorded_once,
                accounts_are_kept_with_at_most_one_default,
                a_bead_that_failed_in_a_run_of_ours_is_listed,
                a_run_that_was_handed_back_is_listed_until_its_bead_is_scheduled_again,
            }
            scans {
                a_long_answer_comes_whole_in_order_and_beside_other_reads,
                one_close_frees_thousands,
            }
            settings {
                a_setting_is_put_replaced_and_removed,
                putting_what_is_there_already_writes_nothing,
                scopes_do_not_see_each_other,
                settings_are_listed_by_key,
                secrets_are_not_in_the_log,
            }
            texts {
                a_search_looks_into_title_and_id,
                a_search_takes_every_character_literally,
                a_search_refuses_a_text_that_is_too_long,
                a_search_finds_text_in_any_script_as_it_was_written,
                each_text_has_a_filter_of_its_own,
                metadata_fields_are_compared_by_value,
                metadata_fields_can_be_asked_for_by_name,
                carried_fields_are_compared_by_value,
                metadata_that_is_no_object_has_no_fields,
                names_of_fields_are_taken_literally,
                long_and_strange_texts_read_back_exactly,
            }
            town_numbers {
                a_town_is_counted_by_rig_host_and_state,
            }
            transactions {
                a_writer_sees_what_it_has_written,
                a_write_is_seen_by_every_handle,
                the_error_of_the_caller_comes_back,
                a_panic_undoes_the_write_and_the_store_goes_on,
                of_several_items_each_stands_or_falls_alone,
                several_items_that_all_fail_change_nothing,
                a_read_sees_one_state_while_another_writes,
                nothing_is_wrong_with_the_file_of_a_healthy_store,
            }
            usage {
                the_usage_of_a_run_is_kept_and_recorded,
                a_run_that_ends_before_its_agent_has_pending_usage,
                done_beads_without_usage_are_counted,
                spending_is_added_up_and_outlives_its_bead,
                what_sources_say_about_usage_is_kept_by_counter,
                beads_of_a_bill_are_found_with_their_convoys,
                spending_is_summed_by_runs_beads_and_convoys,
                the_last_words_of_a_service_about_a_window_are_kept,
                runs_that_have_ended_tell_what_the_next_may_use,
                starts_are_counted_unless_they_failed,
                estimates_and_guards_read_back_as_they_were_written,
                a_bead_stays_with_the_account_of_its_last_run,
            }
            waiting {
                a_target_without_children_is_waited_for_by_itself,
                an_open_target_blocks_with_any_state_of_its_children,
                all_children_are_waited_for,
                with_the_gate_any_children_one_is_enough,
                a_child_that_failed_is_not_done,
                reopening_a_child_blocks_again,
                pinned_children_do_not_count,
                a_new_child_of_a_closed_target_blocks_again,
                a_child_that_moves_away_is_waited_for_there,
                retyping_the_edge_of_a_part_makes_it_none,
                a_part_that_becomes_a_waiter_does_not_wait_for_itself,
                deleting_the_last_open_child_unblocks,
                deleting_the_only_child_that_is_done_blocks_again,
                deleting_the_target_unblocks_and_says_so_only_if_it_did,
                changing_the_gate_counts_at_once,
                a_target_that_appears_late_is_waited_for_with_its_children,
                grandchildren_are_not_waited_for,
                other_edges_do_not_look_at_children,
                a_part_may_wait_for_its_siblings,
            }
            work {
                every_bead_that_is_no_container_or_machinery_is_an_item,
                an_item_without_a_project_has_none,
                items_are_listed_by_urgency_and_age_with_every_filter,
                since_when_is_when_it_was_made_or_when_it_ended,
                an_agent_is_offered_the_most_urgent_and_oldest,
                items_that_are_not_ready_or_for_others_are_not_offered,
                an_item_scheduled_for_an_agent_is_offered_to_no_other,
                an_agent_may_be_particular,
                a_dispatched_item_comes_first_and_only_to_its_agent,
                a_pause_is_told_to_agents_that_ask,
                a_taken_item_is_recorded_and_has_a_lease,
                a_lease_that_is_not_renewed_ends,
                a_blocked_run_is_not_missed_and_a_silent_one_is,
                of_two_agents_that_ask_at_once_one_gets_the_item,
                an_agent_that_asks_twice_at_once_gets_one_item,
                a_token_is_kept_without_its_secret_and_revoked_once,
                a_login_link_is_used_once_and_sessions_that_are_over_are_forgotten,
            }
            workplaces {
                polecats_are_kept_by_name_and_the_rested_come_first,
                each_tree_has_a_range_of_ports_and_the_smallest_free_one_is_next,
                a_tree_is_moved_away_with_a_number_and_told_when_it_was,
                the_rescue_of_a_run_is_kept_once,
                the_silence_of_a_worker_is_written_down_once,
                a_run_is_over_one_limit_and_keeps_its_reserve,
                accepted_work_is_on_its_way_until_it_has_landed,
                the_runs_of_a_host_that_is_gone_are_adopted,
                a_host_renews_its_lease_with_its_declarations,
                the_mode_of_a_host_outlives_its_renewals,
                a_cancelled_run_is_left_to_a_host_with_a_lease,
                runs_of_a_gone_host_are_left_until_it_clears_them,
                writes_of_a_worker_are_checked_before_they_are_committed,
            }
        }
    };
}
