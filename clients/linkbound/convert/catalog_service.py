"""Converters of `linkbound/estimator/v1/catalog_service.proto`."""

from __future__ import annotations

from linkbound.convert.collective import collective_kind_from_proto, collective_kind_to_proto
from linkbound.convert.paging import unreadable_entry_from_proto, unreadable_entry_to_proto
from linkbound.convert.values import EnumConverter, each
from linkbound.domain.catalog import (
    CacheGroup,
    Collective,
    Hardware,
    ImportModelRequest,
    Model,
    ModelPart,
    ParameterGroup,
    RowScope,
    WeightFormatSource,
    WeightSplit,
)
from linkbound.domain.names import HARDWARE, MODELS, resource_id, resource_name
from linkbound.domain.paging import Page, PageRequest
from linkbound.estimator.v1 import catalog_service_pb2

_ROW_SCOPE = EnumConverter(RowScope, catalog_service_pb2.RowScope)
_WEIGHT_SPLIT = EnumConverter(WeightSplit, catalog_service_pb2.WeightSplit)
_MODEL_PART = EnumConverter(ModelPart, catalog_service_pb2.ModelPart)
_WEIGHT_FORMAT_SOURCE = EnumConverter(WeightFormatSource, catalog_service_pb2.WeightFormatSource)

row_scope_to_proto = _ROW_SCOPE.to_proto
row_scope_from_proto = _ROW_SCOPE.from_proto
weight_split_to_proto = _WEIGHT_SPLIT.to_proto
weight_split_from_proto = _WEIGHT_SPLIT.from_proto
model_part_to_proto = _MODEL_PART.to_proto
model_part_from_proto = _MODEL_PART.from_proto
weight_format_source_to_proto = _WEIGHT_FORMAT_SOURCE.to_proto
weight_format_source_from_proto = _WEIGHT_FORMAT_SOURCE.from_proto


def collective_to_proto(value: Collective) -> catalog_service_pb2.Collective:
    """One kind of collective of a pass as a message."""
    return catalog_service_pb2.Collective(
        kind=collective_kind_to_proto(value.kind),
        width=value.width,
        count=value.count,
        row_scope=row_scope_to_proto(value.row_scope),
        reason=value.reason,
        part=model_part_to_proto(value.part),
    )


def collective_from_proto(message: catalog_service_pb2.Collective) -> Collective:
    """One kind of collective of a pass from its message."""
    return Collective(
        kind=collective_kind_from_proto(message.kind),
        width=message.width,
        count=message.count,
        row_scope=row_scope_from_proto(message.row_scope),
        reason=message.reason,
        part=model_part_from_proto(message.part),
    )


def model_to_proto(value: Model) -> catalog_service_pb2.Model:
    """A model as a message."""
    return catalog_service_pb2.Model(
        name=resource_name(MODELS, value.model_id),
        display_name=value.display_name,
        hidden_size=value.hidden_size,
        layer_count=value.layer_count,
        attention_head_count=value.attention_head_count,
        key_value_head_count=value.key_value_head_count,
        vocabulary_size=value.vocabulary_size,
        expert_count=value.expert_count,
        activation_value_bytes=value.activation_value_bytes,
        all_reduce_count=value.all_reduce_count,
        collectives=each(collective_to_proto, value.collectives),
        total_parameters=value.total_parameters,
        mtp_parameters=value.mtp_parameters,
        active_parameters=value.active_parameters,
        weight_bits_per_parameter=value.weight_bits_per_parameter,
        unused_keys=value.unused_keys,
        assumptions=value.assumptions,
        sources=value.sources,
        parameter_groups=each(parameter_group_to_proto, value.parameter_groups),
        cache_groups=each(cache_group_to_proto, value.cache_groups),
        undetermined=value.undetermined,
        active_expert_count=value.active_expert_count,
        mtp_layer_count=value.mtp_layer_count,
        weight_format_source=weight_format_source_to_proto(value.weight_format_source),
    )


def model_from_proto(message: catalog_service_pb2.Model) -> Model:
    """A model from its message; `all_reduce_count` follows from the collectives."""
    return Model(
        model_id=resource_id(MODELS, message.name),
        display_name=message.display_name,
        hidden_size=message.hidden_size,
        layer_count=message.layer_count,
        attention_head_count=message.attention_head_count,
        key_value_head_count=message.key_value_head_count,
        vocabulary_size=message.vocabulary_size,
        expert_count=message.expert_count,
        activation_value_bytes=message.activation_value_bytes,
        collectives=each(collective_from_proto, message.collectives),
        total_parameters=message.total_parameters if message.HasField("total_parameters") else None,
        mtp_parameters=message.mtp_parameters if message.HasField("mtp_parameters") else None,
        active_parameters=message.active_parameters if message.HasField("active_parameters") else None,
        weight_bits_per_parameter=(
            message.weight_bits_per_parameter if message.HasField("weight_bits_per_parameter") else None
        ),
        unused_keys=tuple(message.unused_keys),
        assumptions=tuple(message.assumptions),
        sources=tuple(message.sources),
        parameter_groups=each(parameter_group_from_proto, message.parameter_groups),
        cache_groups=each(cache_group_from_proto, message.cache_groups),
        undetermined=tuple(message.undetermined),
        active_expert_count=message.active_expert_count,
        mtp_layer_count=message.mtp_layer_count,
        weight_format_source=weight_format_source_from_proto(message.weight_format_source),
    )


def parameter_group_to_proto(value: ParameterGroup) -> catalog_service_pb2.ParameterGroup:
    """Parameters of a part as a message."""
    return catalog_service_pb2.ParameterGroup(
        part=model_part_to_proto(value.part),
        parameter_count=value.parameter_count,
        active_parameter_count=value.active_parameter_count,
        weight_bytes=value.weight_bytes,
        split=weight_split_to_proto(value.split),
        layer_count=value.layer_count,
    )


def parameter_group_from_proto(message: catalog_service_pb2.ParameterGroup) -> ParameterGroup:
    """Parameters of a part from their message."""
    return ParameterGroup(
        part=model_part_from_proto(message.part),
        parameter_count=message.parameter_count,
        active_parameter_count=message.active_parameter_count,
        weight_bytes=message.weight_bytes if message.HasField("weight_bytes") else None,
        split=weight_split_from_proto(message.split),
        layer_count=message.layer_count,
    )


def cache_group_to_proto(value: CacheGroup) -> catalog_service_pb2.CacheGroup:
    """What one kind of layer keeps as a message."""
    return catalog_service_pb2.CacheGroup(
        reason=value.reason,
        layer_count=value.layer_count,
        values_per_token=value.values_per_token,
        split_head_count=value.split_head_count,
        window_tokens=value.window_tokens,
        state_bytes_per_request=value.state_bytes_per_request,
        read_tokens=value.read_tokens,
        fp8_bytes_per_token=value.fp8_bytes_per_token,
        fixed_bytes_per_token=value.fixed_bytes_per_token,
    )


def cache_group_from_proto(message: catalog_service_pb2.CacheGroup) -> CacheGroup:
    """What one kind of layer keeps from its message."""
    return CacheGroup(
        reason=message.reason,
        layer_count=message.layer_count,
        values_per_token=message.values_per_token,
        split_head_count=message.split_head_count,
        window_tokens=message.window_tokens if message.HasField("window_tokens") else None,
        state_bytes_per_request=message.state_bytes_per_request,
        read_tokens=message.read_tokens if message.HasField("read_tokens") else None,
        fp8_bytes_per_token=message.fp8_bytes_per_token,
        fixed_bytes_per_token=message.fixed_bytes_per_token,
    )


def import_model_request_to_proto(value: ImportModelRequest) -> catalog_service_pb2.ImportModelRequest:
    """A config to import as a message."""
    return catalog_service_pb2.ImportModelRequest(
        model=resource_name(MODELS, value.model) if value.model else "",
        config_json=value.config_json,
        display_name=value.display_name,
        validate_only=value.validate_only,
        quantization_json=value.quantization_json,
        weight_bits_per_parameter=value.weight_bits_per_parameter,
    )


def import_model_request_from_proto(message: catalog_service_pb2.ImportModelRequest) -> ImportModelRequest:
    """A config to import from its message. Raises InvalidArgumentError with every violation."""
    return ImportModelRequest(
        model=resource_id(MODELS, message.model),
        config_json=message.config_json,
        display_name=message.display_name,
        validate_only=message.validate_only,
        quantization_json=message.quantization_json,
        weight_bits_per_parameter=(
            message.weight_bits_per_parameter if message.HasField("weight_bits_per_parameter") else None
        ),
    )


def import_model_response_to_proto(value: Model) -> catalog_service_pb2.ImportModelResponse:
    """The answer with the model that was imported as a message."""
    return catalog_service_pb2.ImportModelResponse(model=model_to_proto(value))


def import_model_response_from_proto(message: catalog_service_pb2.ImportModelResponse) -> Model:
    """The model that was imported from the answer's message."""
    return model_from_proto(message.model)


def hardware_to_proto(value: Hardware) -> catalog_service_pb2.Hardware:
    """One accelerator as a message."""
    return catalog_service_pb2.Hardware(
        name=resource_name(HARDWARE, value.hardware_id),
        display_name=value.display_name,
        memory_bytes=value.memory_bytes,
        memory_bandwidth_bytes_per_second=value.memory_bandwidth_bytes_per_second,
        sources=value.sources,
    )


def hardware_from_proto(message: catalog_service_pb2.Hardware) -> Hardware:
    """One accelerator from its message."""
    return Hardware(
        hardware_id=resource_id(HARDWARE, message.name),
        display_name=message.display_name,
        memory_bytes=message.memory_bytes,
        memory_bandwidth_bytes_per_second=message.memory_bandwidth_bytes_per_second,
        sources=tuple(message.sources),
    )


def list_models_request_to_proto(value: PageRequest) -> catalog_service_pb2.ListModelsRequest:
    """A question for a page of models as a message."""
    return catalog_service_pb2.ListModelsRequest(page_size=value.page_size, page_token=value.page_token)


def list_models_request_from_proto(message: catalog_service_pb2.ListModelsRequest) -> PageRequest:
    """A question for a page of models from its message. Raises InvalidArgumentError with every violation."""
    return PageRequest(page_size=message.page_size, page_token=message.page_token)


def list_models_response_to_proto(value: Page[Model]) -> catalog_service_pb2.ListModelsResponse:
    """A page of models as a message."""
    return catalog_service_pb2.ListModelsResponse(
        models=each(model_to_proto, value.entries),
        next_page_token=value.next_page_token,
        unreadable=each(unreadable_entry_to_proto, value.unreadable),
    )


def list_models_response_from_proto(message: catalog_service_pb2.ListModelsResponse) -> Page[Model]:
    """A page of models from its message."""
    return Page(
        entries=each(model_from_proto, message.models),
        next_page_token=message.next_page_token,
        unreadable=each(unreadable_entry_from_proto, message.unreadable),
    )


def get_model_request_to_proto(model_id: str) -> catalog_service_pb2.GetModelRequest:
    """The name of a model as a message."""
    return catalog_service_pb2.GetModelRequest(model=resource_name(MODELS, model_id))


def get_model_request_from_proto(message: catalog_service_pb2.GetModelRequest) -> str:
    """The id of a model from the message that names it."""
    return resource_id(MODELS, message.model)


def get_model_response_to_proto(value: Model) -> catalog_service_pb2.GetModelResponse:
    """The answer with one model as a message."""
    return catalog_service_pb2.GetModelResponse(model=model_to_proto(value))


def get_model_response_from_proto(message: catalog_service_pb2.GetModelResponse) -> Model:
    """One model from the answer's message."""
    return model_from_proto(message.model)


def list_hardware_request_to_proto(value: PageRequest) -> catalog_service_pb2.ListHardwareRequest:
    """A question for a page of hardware as a message."""
    return catalog_service_pb2.ListHardwareRequest(page_size=value.page_size, page_token=value.page_token)


def list_hardware_request_from_proto(message: catalog_service_pb2.ListHardwareRequest) -> PageRequest:
    """A question for a page of hardware from its message. Raises InvalidArgumentError with every violation."""
    return PageRequest(page_size=message.page_size, page_token=message.page_token)


def list_hardware_response_to_proto(value: Page[Hardware]) -> catalog_service_pb2.ListHardwareResponse:
    """A page of hardware as a message."""
    return catalog_service_pb2.ListHardwareResponse(
        hardware=each(hardware_to_proto, value.entries),
        next_page_token=value.next_page_token,
        unreadable=each(unreadable_entry_to_proto, value.unreadable),
    )


def list_hardware_response_from_proto(message: catalog_service_pb2.ListHardwareResponse) -> Page[Hardware]:
    """A page of hardware from its message."""
    return Page(
        entries=each(hardware_from_proto, message.hardware),
        next_page_token=message.next_page_token,
        unreadable=each(unreadable_entry_from_proto, message.unreadable),
    )


def get_hardware_request_to_proto(hardware_id: str) -> catalog_service_pb2.GetHardwareRequest:
    """The name of one kind of hardware as a message."""
    return catalog_service_pb2.GetHardwareRequest(hardware=resource_name(HARDWARE, hardware_id))


def get_hardware_request_from_proto(message: catalog_service_pb2.GetHardwareRequest) -> str:
    """The id of one kind of hardware from the message that names it."""
    return resource_id(HARDWARE, message.hardware)


def get_hardware_response_to_proto(value: Hardware) -> catalog_service_pb2.GetHardwareResponse:
    """The answer with one kind of hardware as a message."""
    return catalog_service_pb2.GetHardwareResponse(hardware=hardware_to_proto(value))


def get_hardware_response_from_proto(message: catalog_service_pb2.GetHardwareResponse) -> Hardware:
    """One kind of hardware from the answer's message."""
    return hardware_from_proto(message.hardware)
