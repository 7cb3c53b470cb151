"""Alerts: rules in a file say which events somebody wants to hear of, and how.

rule_file      reads and judges the file; rules, templates
conditions     what in an event a rule is about: pure functions
columns        which jobs read a column that changes: pure functions
store          what is on disk: alerts that were raised, those to be delivered
memory         what rules remember of earlier events
evaluation     events, and time, become alerts, each once
destinations   webhooks, Slack, commands; dispatch brings alerts there
"""

from headwater.forwarders.alerts.forwarder import AlertForwarder

__all__ = ["AlertForwarder"]
