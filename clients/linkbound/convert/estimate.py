"""Converters of `linkbound/types/v1/estimate.proto`."""

from __future__ import annotations

from linkbound.convert.values import EnumConverter, each
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.types.v1 import estimate_pb2

_BASIS = EnumConverter(Basis, estimate_pb2.Basis)
_CONSTRAINT = EnumConverter(Constraint, estimate_pb2.Constraint)
_EFFECT = EnumConverter(Effect, estimate_pb2.Effect)

basis_to_proto = _BASIS.to_proto
basis_from_proto = _BASIS.from_proto
constraint_to_proto = _CONSTRAINT.to_proto
constraint_from_proto = _CONSTRAINT.from_proto
effect_to_proto = _EFFECT.to_proto
effect_from_proto = _EFFECT.from_proto


def estimate_to_proto(value: Estimate) -> estimate_pb2.Estimate:
    """An interval as a message."""
    message = estimate_pb2.Estimate()
    write_estimate(value, message)
    return message


def write_estimate(value: Estimate, message: estimate_pb2.Estimate) -> None:
    """An interval into `message`, which may be a field of an answer: a message that is put into one is copied."""
    message.lower = value.lower
    if value.expected is not None:
        message.expected = value.expected
    if value.upper is not None:
        message.upper = value.upper
    message.lower_basis = basis_to_proto(value.lower_basis)
    message.expected_basis = basis_to_proto(value.expected_basis)
    message.upper_basis = basis_to_proto(value.upper_basis)
    message.binding_constraint = constraint_to_proto(value.binding_constraint)
    message.effects_left_out.extend(map(effect_to_proto, value.effects_left_out))


def estimate_from_proto(message: estimate_pb2.Estimate) -> Estimate:
    """An interval from its message."""
    return Estimate(
        lower=message.lower,
        expected=message.expected if message.HasField("expected") else None,
        upper=message.upper if message.HasField("upper") else None,
        lower_basis=basis_from_proto(message.lower_basis),
        expected_basis=basis_from_proto(message.expected_basis),
        upper_basis=basis_from_proto(message.upper_basis),
        binding_constraint=constraint_from_proto(message.binding_constraint),
        effects_left_out=each(effect_from_proto, message.effects_left_out),
    )
