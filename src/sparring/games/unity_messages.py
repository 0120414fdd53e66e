"""The messages of ML-Agents 0.4, declared at run time: no generated code, any protobuf from 4.22 on.

Names and field numbers are those of the `communicator_objects` package that the 2018 binaries speak. Only fields
that Tennis-like scenes use are declared; others that a binary sends are skipped by protobuf itself.
Needs the packages `protobuf` and `grpcio` (extra `unity`).
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "communicator_objects"
SERVICE = f"{PACKAGE}.UnityToExternal"
METHOD = "Exchange"

API_VERSION = "API-4"
STATUS_RUN, STATUS_CLOSE = 200, 400
COMMAND_STEP, COMMAND_RESET, COMMAND_QUIT = 0, 1, 2
BRAIN_EXTERNAL = 2
"""Kinds of brain: 0 player, 1 heuristic, 2 external (we act for it), 3 internal."""

# message -> fields "number type name"; `[]` repeats, `{}` is a map from string. Enums travel as int32 varints, so
# command, brain_type and the space types are declared int32.
_MESSAGES: dict[str, tuple[str, ...]] = {
    "Header": ("1 int32 status", "2 string message"),
    "UnityMessage": ("1 Header header", "2 UnityOutput unity_output", "3 UnityInput unity_input"),
    "UnityInput": ("1 RLInput rl_input", "2 RLInitializationInput rl_initialization_input"),
    "UnityOutput": ("1 RLOutput rl_output", "2 RLInitializationOutput rl_initialization_output"),
    "RLInitializationInput": ("1 int32 seed",),
    "RLInitializationOutput": (
        "1 string name",
        "2 string version",
        "3 string log_path",
        "5 BrainParameters[] brain_parameters",
        "6 EnvironmentParameters environment_parameters",
    ),
    "BrainParameters": (
        "1 int32 vector_observation_size",
        "2 int32 num_stacked_vector_observations",
        "3 int32 vector_action_size",
        "4 Resolution[] camera_resolutions",
        "5 string[] vector_action_descriptions",
        "6 int32 vector_action_space_type",
        "7 int32 vector_observation_space_type",
        "8 string brain_name",
        "9 int32 brain_type",
    ),
    "Resolution": ("1 int32 width", "2 int32 height", "3 bool gray_scale"),
    "EnvironmentParameters": ("1 float{} float_parameters",),
    "RLInput": (
        "1 AgentActions{} agent_actions",
        "2 EnvironmentParameters environment_parameters",
        "3 bool is_training",
        "4 int32 command",
    ),
    "AgentActions": ("1 AgentAction[] value",),
    "AgentAction": ("1 float[] vector_actions", "2 string text_actions", "3 float[] memories"),
    "RLOutput": ("1 bool global_done", "2 AgentInfos{} agentInfos"),
    "AgentInfos": ("1 AgentInfo[] value",),
    "AgentInfo": (
        "1 float[] stacked_vector_observation",
        "2 bytes[] visual_observations",
        "3 string text_observation",
        "4 float[] stored_vector_actions",
        "5 string stored_text_actions",
        "6 float[] memories",
        "7 float reward",
        "8 bool done",
        "9 bool max_step_reached",
        "10 int32 id",
    ),
}

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int32": _Field.TYPE_INT32,
    "bool": _Field.TYPE_BOOL,
    "float": _Field.TYPE_FLOAT,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
}


def _declare() -> dict[str, Any]:
    """Message classes by name, in a pool of our own so that an installed `unityagents` cannot clash with it."""
    file = descriptor_pb2.FileDescriptorProto(name="sparring_unity_0_4.proto", package=PACKAGE, syntax="proto3")
    for name, lines in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for line in lines:
            number, kind, field_name = line.split()
            field = message.field.add(name=field_name, number=int(number), label=_Field.LABEL_OPTIONAL)
            if kind.endswith("{}"):
                # A map is a repeated message of pairs, flagged as one and named after its field in camel case.
                camel = "".join(word[:1].upper() + word[1:] for word in field_name.split("_"))
                entry = message.nested_type.add(name=f"{camel}Entry")
                entry.options.map_entry = True
                _set_type(entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL), "string")
                _set_type(entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL), kind[:-2])
                field.label = _Field.LABEL_REPEATED
                _set_type(field, f"{name}.{entry.name}")
            elif kind.endswith("[]"):
                field.label = _Field.LABEL_REPEATED
                _set_type(field, kind[:-2])
            else:
                _set_type(field, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in _MESSAGES
    }


def _set_type(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"


UnityMessage: Any = _declare()["UnityMessage"]
"""The one message of both directions; nested messages are reached through its fields."""
