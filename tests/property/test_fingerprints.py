"""A fingerprint stands for the shape of a write: runs of one program have one, other programs have others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events.base import StringMap
from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.fingerprints import fingerprint_of, without_staging
from headwater.events.jobs import SinkSchema, SourceSchema
from headwater.events.names import DatasetId, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Column, Transform, Watermark
from tests.kit.columns import spark_types

NUMBERS = st.integers(0, 10**9)
WORDS = st.text(st.sampled_from("abcdefgh '%_"), max_size=12)


def source(name: str = "orders", **more: object) -> SourceSchema:
    columns = (Column(name="id", type='"long"'), Column(name="amount", type='"decimal(10,2)"'))
    place = DatasetId(namespace="s3://lake", name=f"warehouse/{name}")
    return SourceSchema.model_validate({"dataset": place, "columns": columns, **more})


def sink(name: str = "warehouse/daily", **more: object) -> SinkSchema:
    return SinkSchema.model_validate({"dataset": DatasetId(namespace="s3://lake", name=name), **more})


def edge(expression: str = "amount", source_at: int = 0, sink_at: int = 0, column: str = "amount") -> ColumnLineage:
    return ColumnLineage(
        output=sink_at,
        input=source_at,
        source=(column,),
        target=("total",),
        derivation=Derivation.AGGREGATION,
        expression=expression,
    )


def of_expression(text: str) -> bytes:
    return fingerprint_of([source()], [sink()], [edge(text)])


def reading(options: dict[str, str], name: str = "orders", **more: object) -> bytes:
    return fingerprint_of([source(name, options=StringMap(options), **more)], [sink()])


def of_type(type_: str) -> bytes:
    return fingerprint_of([source(columns=(Column(name="c", type=type_),))], [sink()])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class TestExpressions:
    @given(NUMBERS, NUMBERS, WORDS, WORDS)
    def test_literals_are_no_part_of_it(self, number: int, other: int, word: str, another: str) -> None:
        text = "sum(CASE WHEN `day` = {} AND `n` > {} THEN amount ELSE {} END)"
        assert of_expression(text.format(quoted(word), number, number)) == of_expression(
            text.format(quoted(another), other, other)
        )

    @given(NUMBERS, NUMBERS)
    def test_expression_ids_are_no_part_of_it(self, one: int, other: int) -> None:
        text = "sum((amount#{0}L * rate#{1}))"
        assert of_expression(text.format(one, other)) == of_expression(text.format(other, one))


POSITIONS = [
    *("startingOffsets", "endingOffsets", "startingOffsetsByTimestamp", "startingTimestamp", "startingoffsets"),
    *("versionAsOf", "timestampAsOf", "startingVersion", "endingVersion", "versionasof"),
    *("snapshot-id", "as-of-timestamp", "start-snapshot-id", "end-snapshot-id", "stream-from-timestamp", "tag"),
    *("scan.snapshot-id", "scan.tag-name", "scan.version", "incremental-between", "spark.paimon.scan.snapshot-id"),
    *("as.of.instant", "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"),
    *("read.snapshot-id", "spark.sql.iceberg.snapshot-id", "scan.start-snapshot-id"),
    *("lowerBound", "upperBound", "modifiedAfter", "snapshotStartBatchId", "snapshotTimeMillis"),
]
OF_THE_RUN = [
    *("userMetadata", "spark.databricks.delta.commitInfo.userMetadata", "txnAppId", "txnVersion", "spark.wap.id"),
    *("snapshot-property.run", "snapshot-property.Batch-Id", "spark.sql.iceberg.snapshot-property.run"),
    *("checkpointLocation", "spark.sql.streaming.checkpointLocation", "schemaTrackingLocation", "tempdir"),
    *("spark.sql.sources.writeJobUUID", "rewritten-file-scan-task-set-id", "batchId", "queryId"),
]
BOOK_KEEPING = [
    *("queryName", "transient_lastDdlTime", "numRows", "spark.sql.statistics.totalSize", "current-snapshot-id"),
    *("metadata_location", "delta.lastCommitTimestamp", "spark.sql.statistics.colStats.id.max"),
]


class TestOptions:
    @pytest.mark.parametrize("option", [*POSITIONS, *OF_THE_RUN])
    def test_of_what_differs_in_each_run_only_the_name_counts(self, option: str) -> None:
        one, other = ({option: value, "merge": "x"} for value in ("5829", "earliest/_temporary/0"))
        assert reading(one) == reading(other) != reading({"merge": "x"})

    def test_positions_of_unlike_kinds_are_unlike_shapes(self) -> None:
        kinds = [
            {},
            {"snapshot-id": "1"},
            {"start-snapshot-id": "1"},
            {"start-snapshot-id": "1", "end-snapshot-id": "2"},
        ]
        assert len({reading(options) for options in kinds}) == len(kinds)

    @pytest.mark.parametrize("option", BOOK_KEEPING)
    def test_what_systems_count_for_themselves_and_the_name_of_a_query_are_no_part_of_it(self, option: str) -> None:
        assert reading({option: "12"}) == reading({option: "13"}) == reading({})

    @pytest.mark.parametrize(
        "option",
        [
            *("team.tag", "my.snapshot-id", "x.query", "tagged", "versionAsOf2", "snapshot-properties.a", "a.path"),
            *("startingOffsetsByTimestampStrategy", "numPartitions", "branch", "mergeSchema", "scan.mode", "subscribe"),
            *("readChangeFeed", "hoodie.datasource.query.type", "versionAsOf.", "current-snapshot", "\u017fnapshot-id"),
        ],
    )
    def test_all_other_options_count_with_their_values(self, option: str) -> None:
        assert len({reading({option: "1"}), reading({option: "2"}), reading({})}) == 3

    @pytest.mark.parametrize("option", ["replaceWhere", "replacewhere", "query", "dbtable", "predicates", "filter"])
    @given(one=NUMBERS, other=NUMBERS, word=WORDS)
    def test_of_statements_the_literals_are_no_part(self, option: str, one: int, other: int, word: str) -> None:
        text = "(SELECT id,  amount FROM orders WHERE day >= {} AND n IN ({}, 7)) x"
        was = reading({option: text.format("'2024-01-01'", one)})
        assert was == reading({option: text.format(quoted(word), other)})
        assert was != reading({option: text.replace("amount", "price").format("'2024-01-01'", one)})

    def test_databases_differ_in_what_double_quotes_hold(self) -> None:
        def asking(place: str, column: str, gap: str = " ") -> bytes:
            options = StringMap({"query": f'SELECT "{column}"' + f"{gap}FROM t WHERE d > '2024'"})
            dataset = DatasetId(namespace=place, name="db.t")
            return fingerprint_of([source(dataset=dataset, format=Format.JDBC, options=options)], [sink()])

        assert asking("postgres://h:5432", "a") != asking("postgres://h:5432", "b")
        assert asking("postgres://h:5432", "a b") == asking("postgres://h:5432", "a b", gap="\n\t ")
        assert asking("mysql://h:3306", "2024-01-01") == asking("mysql://h:3306", "2024-01-02")

    def test_where_the_dataset_is_unknown_the_url_tells_the_database(self) -> None:
        def asking(url: str, column: str) -> bytes:
            options = {"query": "SELECT % FROM t JOIN u".replace("%", f'"{column}"'), "url": url}
            return reading(options, dataset=None, format=Format.JDBC)

        assert asking("jdbc:postgresql://h/d", "a") != asking("jdbc:postgresql://h/d", "b")
        assert asking("jdbc:MariaDB://h/d", "a") == asking("jdbc:MariaDB://h/d", "b")

    @pytest.mark.parametrize("option", ["path", "paths"])
    def test_a_path_counts_only_where_it_is_all_that_is_known_of_the_place(self, option: str) -> None:
        one, other = {option: "s3://lake/in/day=1"}, {option: "s3://lake/in/day=2"}
        assert reading(one) == reading(other) == reading({})
        assert reading(one, dataset=None) != reading(other, dataset=None)

    def test_the_case_of_a_name_is_no_part_of_it(self) -> None:
        assert reading({"mergeSchema": "true", "VERSIONasOF": "1"}) == reading(
            {"mergeschema": "true", "versionAsOf": "2"}
        )
        assert reading({"ÄB": "1"}) != reading({"äB": "1"})

    @given(st.dictionaries(st.sampled_from(["a", "b", "tag", "query", "Q", "path"]), WORDS), st.randoms())
    def test_the_order_of_options_is_no_part_of_it(self, options: dict[str, str], random: Random) -> None:
        items = list(options.items())
        random.shuffle(items)
        assert reading(dict(items)) == reading(options)

    def test_options_that_differ_only_in_case_are_two(self) -> None:
        assert reading({"a": "1", "A": "2"}) == reading({"a": "2", "A": "1"}) != reading({"a": "2"})


def struct(*fields: object) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def field(type_: object = "string", **metadata: object) -> dict[str, object]:
    return {"name": "a", "type": type_, "nullable": True, "metadata": metadata}


class TestTypes:
    @given(spark_types.TYPES, st.randoms())
    def test_how_the_json_is_spelled_is_no_part_of_it(self, spelled: object, random: Random) -> None:
        def shuffled(value: object) -> object:
            if isinstance(value, dict):
                return {key: shuffled(value[key]) for key in random.sample(list(value), len(value))}
            return [shuffled(item) for item in value] if isinstance(value, list) else value

        assert of_type(json.dumps(shuffled(spelled), indent=1)) == of_type(json.dumps(spelled))

    def test_comments_of_nested_fields_are_no_part_of_it(self) -> None:
        plain = of_type(struct(field()))
        assert plain == of_type(struct(field(comment="first"))) == of_type(struct({"name": "a", "type": "string"}))
        inner = {"type": "array", "elementType": json.loads(struct(field(comment="x"))), "containsNull": True}
        bare = {"type": "array", "elementType": json.loads(struct(field())), "containsNull": True}
        assert of_type(struct(field(inner))) == of_type(struct(field(bare)))

    @pytest.mark.parametrize("other", ["b", "c"])
    def test_names_of_nested_fields_count(self, other: str) -> None:
        assert of_type(struct({**field(), "name": other})) != of_type(struct(field()))

    def test_lengths_and_collations_count_wherever_they_are_kept(self) -> None:
        kept = field(__CHAR_VARCHAR_TYPE_STRING="varchar(9)", comment="x")
        assert of_type(struct(kept)) == of_type(struct(field("varchar(9)"))) != of_type(struct(field()))
        collated = {"a": "icu.UNICODE_CI"}
        assert of_type(struct(field(__COLLATIONS=collated, comment="x"))) == of_type(
            struct(field(__COLLATIONS=collated))
        )
        assert of_type(struct(field(__COLLATIONS=collated))) != of_type(struct(field()))

    def test_what_makes_no_sense_there_counts_as_it_is(self) -> None:
        odd = [field(__COLLATIONS={"b": 1}), field(__CHAR_VARCHAR_TYPE_STRING="char"), field(__COLLATIONS={"b": 2})]
        assert len({of_type(struct(one)) for one in [*odd, field()]}) == 4

    def test_the_pickled_code_of_a_type_is_no_part_of_it(self) -> None:
        def udt(code: str) -> str:
            return json.dumps({"type": "udt", "pyClass": "m.T", "sqlType": "long", "serializedClass": code})

        assert of_type(udt("gAS1")) == of_type(udt("gAS2")) != of_type(udt("").replace("m.T", "m.U"))

    @pytest.mark.slow
    @given(st.text(min_size=1) | st.sampled_from(["[" * 5000, '{"type":1}', '"\\ud800"', '{"a":1,"a":2}']))
    def test_any_text_is_taken(self, text: str) -> None:
        assert of_type(text) != of_type(text + "x")

    def test_types_too_long_to_be_remembered_are_read_too(self) -> None:
        fields = [{**field(comment="x"), "name": f"f{number}"} for number in range(99)]
        bare = [{**one, "metadata": {}} for one in fields]
        assert of_type(struct(*fields)) == of_type(struct(*bare)) != of_type(struct(*bare[1:]))

    @pytest.mark.parametrize("notes", [{"comment": "c"}, {"default": "1"}, {"metadata": '{"a":1}'}])
    def test_notes_of_columns_are_no_part_of_it(self, notes: dict[str, str]) -> None:
        column = Column(name="c", type='"long"')
        noted = fingerprint_of([source(columns=(column.model_copy(update=notes),))], [sink()])
        assert noted == fingerprint_of([source(columns=(column,))], [sink()])


class TestOrder:
    @given(st.permutations(["a", "b", "c", "d"]), st.randoms())
    def test_the_order_of_inputs_and_edges_does_not_matter(self, names: list[str], random: Random) -> None:
        def written(order: list[str]) -> bytes:
            inputs = [source(name) for name in order]
            edges = [edge(f"max({name})", order.index(name)) for name in order]
            random.shuffle(edges)
            return fingerprint_of(inputs, [sink()], edges)

        assert written(names) == written(sorted(names))

    def test_a_self_join_is_not_a_plain_read(self) -> None:
        once, twice, thrice = (fingerprint_of([source()] * count, [sink()], [edge()]) for count in (1, 2, 3))
        assert len({once, twice, thrice}) == 3
        assert fingerprint_of([source()], [sink()]) != fingerprint_of([source()], [sink()] * 2)

    def test_which_side_of_a_self_join_feeds_what_counts(self) -> None:
        def joined(left: int, right: int) -> bytes:
            edges = [edge("k", left, column="k"), edge("v", right, column="v")]
            return fingerprint_of([source()] * 2, [sink()], edges)

        assert joined(0, 1) == joined(1, 0)
        assert joined(0, 0) == joined(1, 1)
        assert joined(0, 1) != joined(0, 0)

    def test_sides_are_distinguished_by_what_they_reach_through_outputs_that_are_alike(self) -> None:
        def written(ends: list[tuple[int, int]]) -> bytes:
            return fingerprint_of([source()] * 3, [sink()] * 3, [edge("x", start, end) for start, end in ends])

        path = written([(0, 0), (1, 0), (1, 1), (2, 1)])
        assert path == written([(2, 2), (0, 2), (0, 1), (1, 1)])
        assert path != written([(0, 0), (1, 0), (2, 1), (2, 2)])
        assert path != written([(0, 0), (1, 0), (1, 1), (0, 1)])

    def test_ends_tell_sides_apart_however_far_they_are(self) -> None:
        """A chain through four inputs and outputs, and a chain through two beside a ring: the same ends, the same
        number of edges at each."""

        def written(*ends: tuple[int, int]) -> bytes:
            return fingerprint_of([source()] * 4, [sink()] * 4, [edge("x", start, end) for start, end in ends])

        short = [(0, 0), (1, 0), (1, 1)]
        chain = written(*short, (2, 1), (2, 2), (3, 2), (3, 3))
        assert chain != written(*short, (2, 2), (2, 3), (3, 2), (3, 3))
        assert chain == written((3, 3), (2, 3), (2, 2), (1, 2), (1, 1), (0, 1), (0, 0))

    def test_an_edge_said_twice_is_one(self) -> None:
        assert fingerprint_of([source()], [sink()], [edge()] * 2) == fingerprint_of([source()], [sink()], [edge()])

    def test_an_edge_to_what_is_not_there_counts(self) -> None:
        shapes = [[], [edge("x", 7)], [edge("x", 8)], [edge("x", 0, 7)], [edge("x", 0)]]
        assert len({fingerprint_of([source()], [sink()], edges) for edges in shapes}) == len(shapes)

    @given(st.data())
    def test_equal_for_equal_graphs_and_only_for_them(self, data: st.DataObject) -> None:
        """By trying every order of up to three inputs, among them ones that are alike, and two outputs."""
        first, second = (_graph(data), _graph(data))
        assert (_of(first) == _of(second)) == (_smallest(first) == _smallest(second))
        ins, outs, edges = first
        to, sink_to = data.draw(st.permutations(range(len(ins)))), data.draw(st.permutations(range(len(outs))))
        moved = [(to[start], sink_to[end], column) for start, end, column in edges]
        shuffled = ([ins[to.index(at)] for at in range(len(ins))], [outs[sink_to.index(at)] for at in range(len(outs))])
        assert _of((*shuffled, moved)) == _of(first)


Graph = tuple[list[str], list[str], list[tuple[int, int, str]]]


def _graph(data: st.DataObject) -> Graph:
    ins = data.draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=3))
    outs = data.draw(st.lists(st.sampled_from("xy"), min_size=1, max_size=2, unique=True))
    ends = st.tuples(st.integers(0, len(ins) - 1), st.integers(0, len(outs) - 1), st.sampled_from("kv"))
    return ins, outs, data.draw(st.lists(ends, max_size=4, unique=True))


def _of(graph: Graph) -> bytes:
    ins, outs, edges = graph
    columns = [edge("e", start, end, column) for start, end, column in edges]
    return fingerprint_of([*map(source, ins)], [*map(sink, outs)], columns)


def _smallest(graph: Graph) -> object:
    ins, outs, edges = graph
    return min(
        (
            [ins[at] for at in order],
            [outs[at] for at in sink_order],
            sorted((order.index(start), sink_order.index(end), column) for start, end, column in edges),
        )
        for order in permutations(range(len(ins)))
        for sink_order in permutations(range(len(outs)))
    )


STAGING = [
    *("_temporary", "_temporary/0/_temporary/attempt_2024_m_1/day=1", "_temporary/manifest_1/task_1"),
    *("__magic/job-5/tasks/attempt/__base/day=1", "__magic_job-5-6/tasks/attempt/__base/part-0", ".sparkStaging/app_1"),
    *(
        ".spark-staging-5b1c/day=1",
        ".hive-staging_hive_2024-01-01_1-2/-ext-10000",
        ".hive-staging",
        ".hoodie/.temp/2024",
    ),
]
NOT_STAGING = [
    *("my_temporary/x", "_temporary_/x", "__magic_", "__magical", "a__magic/b", "__magic_job-/x", ".hive-staging-2"),
    *("day=1/part-0", ".spark/x", ".spark-staging-/x", ".hoodie/.tempo", ".hoodie/x/.temp", "x.hoodie/.temp"),
    *("_staging/orders", ".sparkStaging2"),
]


class TestStaging:
    @pytest.mark.parametrize("staging", STAGING)
    @pytest.mark.parametrize("path", ["warehouse/daily", "s3://lake/daily", "/lake/daily", "file:/d"])
    def test_a_write_is_for_the_directory_above(self, staging: str, path: str) -> None:
        assert without_staging(f"{path}/{staging}") == path
        assert without_staging(f"{path}/{staging}/") == path

    @pytest.mark.parametrize("rest", NOT_STAGING)
    def test_other_segments_stay(self, rest: str) -> None:
        for path in (rest, f"warehouse/{rest}", f"/{rest}"):
            assert without_staging(path) == path

    @pytest.mark.parametrize(
        ("path", "above"), [("_temporary/0", ""), ("/_temporary/0", "/"), ("/", "/"), ("", ""), ("x//_temporary", "x/")]
    )
    def test_at_the_root(self, path: str, above: str) -> None:
        assert without_staging(path) == above

    @given(st.uuids(), st.sampled_from(STAGING))
    def test_staging_directories_are_no_part_of_it(self, uuid: object, staging: str) -> None:
        plain = fingerprint_of([source()], [sink("warehouse/daily", options=StringMap({"to": "s3://a/b"}))])
        options = StringMap({"to": f"s3://a/b/{staging}/{uuid}"})
        assert fingerprint_of([source()], [sink(f"warehouse/daily/{staging}/{uuid}", options=options)]) == plain


TABLE = TableName(catalog="c", database="d", table="t")
BASE = fingerprint_of([source()], [sink()], [edge("sum(amount)")])
OTHERS = [
    fingerprint_of([source("other")], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source()], [sink("warehouse/other")], [edge("sum(amount)")]),
    fingerprint_of([source()], [sink()], [edge("max(amount)")]),
    fingerprint_of([source()], [sink()], []),
    fingerprint_of([source(branch="audit", main=False)], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source(tag="v1")], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source(table=TABLE)], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source(options=StringMap({"mergeSchema": "true"}))], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source(columns=(Column(name="id", type='"int"'),))], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source()], [sink(partitioning=(Transform(columns=(("day",),)),))], [edge("sum(amount)")]),
    fingerprint_of(
        [source()], [sink(partitioning=(Transform(columns=(("day",),), field_name="d"),))], [edge("sum(amount)")]
    ),
    fingerprint_of([source()], [sink(primary_key=(("id",),))], [edge("sum(amount)")]),
    fingerprint_of([source(watermarks=(Watermark(column=("ts",), delay="1 hour"),))], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source(), source("second")], [sink()], [edge("sum(amount)")]),
    fingerprint_of([SourceSchema(dataset=None)], [sink()], [edge("sum(amount)")]),
    fingerprint_of([SourceSchema(dataset=None, opaque="an RDD")], [sink()], [edge("sum(amount)")]),
    fingerprint_of([SourceSchema(dataset=None, table=TABLE)], [sink()], [edge("sum(amount)")]),
    fingerprint_of([source()], [SinkSchema(dataset=None)], [edge("sum(amount)")]),
    fingerprint_of([source()], [SinkSchema(dataset=None, table=TABLE)], [edge("sum(amount)")]),
    fingerprint_of([source()], [SinkSchema(dataset=None, opaque="foreachPartition")], [edge("sum(amount)")]),
    fingerprint_of([source()], [SinkSchema(dataset=None, opaque="foreach")], [edge("sum(amount)")]),
]


class TestShapes:
    def test_other_shapes_have_other_fingerprints(self) -> None:
        assert len({BASE, *OTHERS}) == 1 + len(OTHERS)

    def test_what_is_read_is_not_what_is_written(self) -> None:
        place = DatasetId(namespace="s3://lake", name="t")
        reads, writes = SourceSchema(dataset=place), SinkSchema(dataset=place)
        assert fingerprint_of([reads], []) != fingerprint_of([], [writes])

    @pytest.mark.parametrize("more", [{"generation": "2024"}, {"generation": "2025"}])
    def test_the_generation_of_a_table_is_no_part_of_it(self, more: dict[str, str]) -> None:
        assert fingerprint_of([source(**more)], [sink(**more)]) == fingerprint_of([source()], [sink()])

    def test_which_tag_is_read_is_no_part_of_it(self) -> None:
        assert reading({}, tag="day-1") == reading({}, tag="day-2") != reading({})

    @given(NUMBERS, NUMBERS)
    def test_what_spark_counts_in_opaque_inputs_and_outputs_is_no_part_of_it(self, one: int, other: int) -> None:
        def written(number: int) -> bytes:
            unseen = {"dataset": None, "opaque": f"MapPartitionsRDD[{number}] at map at job.py:{number}"}
            return fingerprint_of([SourceSchema.model_validate(unseen)], [SinkSchema.model_validate(unseen)])

        assert written(one) == written(other)

    def test_names_are_what_their_bytes_are(self) -> None:
        composed, decomposed = (unicodedata.normalize(form, "caf\u00e9") for form in ("NFC", "NFD"))
        assert fingerprint_of([source(composed)], [sink()]) != fingerprint_of([source(decomposed)], [sink()])

    def test_names_that_have_no_utf8_are_taken(self) -> None:
        one, other = ((Column(name=name, type='"long"'),) for name in ("\ud800", "\ud801"))
        assert fingerprint_of([source(columns=one)], [sink()]) != fingerprint_of([source(columns=other)], [sink()])


NESTED = struct(field("varchar(9)"), {"name": "b", "type": "long", "nullable": False})
PINNED = {
    "be71e5a446f47b9013b5caf413e95323": BASE,
    "9987e371edd8e2ffb366eb5262ba5472": fingerprint_of(
        [source(), source()], [sink(), sink("b")], [edge("k", 0, column="k"), edge("v", 1), edge("v", 1, 1)]
    ),
    "4ab806670858c490731cb3830c72591c": fingerprint_of(
        [
            source(
                options=StringMap(
                    {"query": "SELECT a FROM t WHERE d > '1'", "versionAsOf": "7", "mergeSchema": "true"}
                ),
                columns=(Column(name="n", type=NESTED),),
                format=Format.DELTA,
                tag="t",
                branch="b",
                main=False,
            )
        ],
        [sink(partitioning=(Transform(name="bucket", columns=(("a",),), arguments=("16",)),), primary_key=(("id",),))],
    ),
    "58996de5fc88675fba81d575dd5b333a": fingerprint_of(
        [SourceSchema(dataset=None, table=TABLE)],
        [SinkSchema(dataset=None, opaque="foreach")],
        [ColumnLineage(output=0, input=0, source=("s", "element"), derivation=Derivation.FILTER)],
    ),
}


class TestStability:
    def test_it_is_the_same_in_every_version(self) -> None:
        """Stored fingerprints join with new ones: who changes these values breaks stored lineage."""
        assert [value.hex() for value in PINNED.values()] == list(PINNED)

    @pytest.mark.parametrize("seed", ["0", "4711"])
    @pytest.mark.slow
    def test_it_is_the_same_in_every_process(self, seed: str) -> None:
        code = "from tests.property.test_fingerprints import PINNED; print(*[v.hex() for v in PINNED.values()])"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.split() == list(PINNED)
