"""Queries, and the edges that each has: thought through by hand, never taken from what is reported.

customers(id INT, name STRING, region STRING, score DOUBLE)
orders(id INT, customer INT, amount DOUBLE, status STRING, placed TIMESTAMP)
items(order_id INT, sku STRING, qty INT, tags ARRAY<STRING>, dims STRUCT<w: INT, h: INT, box: STRUCT<d: INT>>,
      attrs MAP<STRING, INT>, parts ARRAY<STRUCT<p: INT, q: INT>>)
"""

from __future__ import annotations

from typing import Final

TABLES: Final = (
    "create table customers (id int, name string, region string, score double) using parquet",
    "create table orders (id int, customer int, amount double, status string, placed timestamp) using parquet",
    """create table items (order_id int, sku string, qty int, tags array<string>,
       dims struct<w:int,h:int,box:struct<d:int>>, attrs map<string,int>, parts array<struct<p:int,q:int>>)
       using parquet""",
    "create view good as select id, upper(name) as n from customers where score > 1",
    "create view better as select n as m from good where id > 7",
    "create temporary view fleeting as select amount * 2 as double, status from orders",
    "create global temporary view everywhere as select id as k from orders",
    "create table fixed (c char(4), v varchar(9)) using parquet",
)
ALL_OF_CUSTOMERS: Final = "id = c.id; name = c.name; region = c.region; score = c.score"

PROJECTIONS: Final = {
    "select id, name from customers": "id = c.id; name = c.name",
    "select id as k, upper(name) as n from customers": "k = c.id; n <- c.name",
    "select amount * 2 + id as x, 1 as one, current_date() as d from orders": "x <- o.amount, o.id; one none; d none",
    "select * from customers": ALL_OF_CUSTOMERS,
    "select c.*, 'x' as x from customers c": f"{ALL_OF_CUSTOMERS}; x none",
    "select distinct region from customers": "region = c.region; ~GROUP_BY c.region",
    "select cast(id as bigint) as a, cast(id as double) as b, cast(id as decimal(12,2)) as d from customers":
        "a = c.id; b = c.id; d = c.id",
    "select cast(id as string) as a, cast(score as float) as b, cast(id as smallint) as d from customers":
        "a <- c.id; b <- c.score; d <- c.id",
    "select cast(name as date) as a, cast(id as decimal(9,0)) as b from customers": "a <- c.name; b <- c.id",
    "select cast(cast(id as bigint) as decimal(20,0)) as a from customers": "a = c.id",
    "select name || region as x, concat_ws('-', region, name) as y from customers":
        "x <- c.name, c.region; y <- c.name, c.region",
    "select a, a + 1 as b from (select id + 1 as a from customers)": "a <- c.id; b <- c.id",
    "select id + 1 as a, a * 2 as b from customers": "a <- c.id; b <- c.id",
    "select x.k from (select id as k, name from customers) x where x.name like 'a%'": "k = c.id; ~FILTER c.name",
    "select id from customers limit 3": "id = c.id",
    "select id from customers order by score limit 3": "id = c.id; ~SORT c.score",
    "select id from customers order by upper(name), score desc": "id = c.id; ~SORT c.name, c.score",
    "select id from customers sort by region": "id = c.id; ~SORT c.region",
    "select id from customers distribute by region": "id = c.id",
    "select id from customers cluster by region": "id = c.id; ~SORT c.region",
    "select id from customers tablesample (10 percent)": "id = c.id",
    "select id from customers offset 2": "id = c.id",
    "select /*+ repartition(3, region) */ id from customers": "id = c.id",
    "select id from customers where score > 1 and region = 'x' or name is null":
        "id = c.id; ~FILTER c.score, c.region, c.name",
    "select -score as s, not (score > 1) as b, score between 1 and 2 as w, region in ('a', name) as i from customers":
        "s <- c.score; b <- c.score; w <- c.score; i <- c.region, c.name",
    "select c, v from fixed": "c = fixed.c; v = fixed.v",
    "select id, id as id2, id from customers": "id = c.id; id2 = c.id",
    "select id from range(10)": "id none",
    "select x from values (1), (2) t(x)": "x none",
    "select rand() as r, uuid() as u, id from customers": "r none; u none; id = c.id",
}  # fmt: skip

CHOICES: Final = {
    "select case when score > 1 then name else region end as x from customers": "x <- c.name, c.region; x ? c.score",
    "select case region when 'a' then name when 'b' then 'lit' end as x from customers": "x <- c.name; x ? c.region",
    "select case when score > 1 then 'a' else 'b' end as x from customers": "x ? c.score",
    "select if(score > 1, id, 0) as x from customers": "x <- c.id; x ? c.score",
    "select if(true, name, region) as x from customers": "x = c.name",
    "select if(score > 1, name, name) as x from customers": "x = c.name",
    "select coalesce(name, region, 'x') as x from customers": "x <- c.name, c.region; x ? c.name, c.region",
    "select nvl2(name, region, 'x') as a, nullif(name, region) as b, ifnull(name, region) as d from customers":
        "a <- c.region; a ? c.name; b <- c.name; b ? c.name, c.region; d <- c.name, c.region; d ? c.name",
    "select greatest(id, score) as g from customers": "g <- c.id, c.score",
    "select case when score > 1 then case when id > 2 then name end else region end as x from customers":
        "x <- c.name, c.region; x ? c.score, c.id",
    "select 1 + if(score > 1, id, 0) as x from customers": "x <- c.id; x ? c.score",
    "select sum(case when status = 'x' then amount else 0 end) as s from orders": "s << o.amount; s ? o.status",
    "select case when sum(amount) > 10 then 'big' else max(status) end as x from orders": "x << o.status; x ? o.amount",
    "select id from customers where case when score > 1 then name else region end = 'x'":
        "id = c.id; ~FILTER c.score, c.name, c.region",
    "select y + 1 as z from (select if(score > 1, id, 0) as y from customers)": "z <- c.id; z ? c.score",
}  # fmt: skip

AGGREGATES: Final = {
    "select region, count(*) as n, sum(score) as s, avg(score + id) as a from customers group by region":
        "region = c.region; n none; s << c.score; a << c.score, c.id; ~GROUP_BY c.region",
    "select count(distinct name) as n, approx_count_distinct(id) as m from customers": "n << c.name; m << c.id",
    "select upper(region) as r, max(score) as m from customers group by upper(region)":
        "r <- c.region; m << c.score; ~GROUP_BY c.region",
    "select region, min(score) as m from customers group by 1 having count(id) > 2":
        "region = c.region; m << c.score; ~GROUP_BY c.region; ~FILTER c.id",
    "select sum(score) / count(id) + 1 as r from customers": "r << c.score, c.id",
    "select sum(score) filter (where region = 'x') as s from customers": "s << c.score; s ? c.region",
    "select max_by(name, score) as m, min_by(id, upper(region)) as n from customers":
        "m << c.name; m ? c.score; n << c.id; n ? c.region",
    "select first(name) as f, collect_list(struct(id, name)) as l, percentile(score, 0.5) as p from customers":
        "f << c.name; l << c.id, c.name; p << c.score",
    "select region, name, sum(score) as s from customers group by rollup(region, name)":
        "region = c.region; name = c.name; s << c.score; ~GROUP_BY c.region, c.name",
    "select region, grouping_id() as g, grouping(region) as h, count(id) as n "
    "from customers group by cube(region, name)":
        "region = c.region; g none; h none; n << c.id; ~GROUP_BY c.region, c.name",
    "select region, name, max(id) as m from customers group by grouping sets ((region), (name), ())":
        "region = c.region; name = c.name; m << c.id; ~GROUP_BY c.region, c.name",
    "select upper(region) as r, sum(score) as s from customers group by rollup(upper(region))":
        "r <- c.region; s << c.score; ~GROUP_BY c.region",
    "select region from customers group by region": "region = c.region; ~GROUP_BY c.region",
    "select region, sum(score) as s from customers group by all": "region = c.region; s << c.score; ~GROUP_BY c.region",
    "select max(s) as m from (select region, sum(score) as s from customers group by region)":
        "m << c.score; ~GROUP_BY c.region",
    "select region || count(name) as x from customers group by region":
        "x <- c.region; x << c.name; ~GROUP_BY c.region",
    "select region from customers group by region order by sum(score)":
        "region = c.region; ~GROUP_BY c.region; ~SORT c.score",
    "select any_value(name) as a, bool_or(score > 1) as b from customers": "a << c.name; b << c.score",
    "select upper(s) as u from (select max(name) as s from customers)": "u << c.name",
    "select distinct sum(score) as s from customers group by region": "s << c.score; ~GROUP_BY c.region, c.score",
}  # fmt: skip

JOINS: Final = {
    "select o.id, c.name from orders o join customers c on o.customer = c.id":
        "id = o.id; name = c.name; ~JOIN o.customer, c.id",
    "select o.id, c.name from orders o left join customers c on o.customer = c.id and c.score > 1":
        "id = o.id; name = c.name; ~JOIN o.customer, c.id, c.score",
    "select id, amount, name from orders join customers using (id)":
        "id = o.id; amount = o.amount; name = c.name; ~JOIN o.id, c.id",
    "select id, amount, name from orders full outer join customers using (id)":
        "id <- o.id, c.id; id ? o.id; amount = o.amount; name = c.name; ~JOIN o.id, c.id",
    "select id, amount, name from orders right join customers using (id)":
        "id = c.id; amount = o.amount; name = c.name; ~JOIN o.id, c.id",
    "select id, status, region from orders natural join customers":
        "id = o.id; status = o.status; region = c.region; ~JOIN o.id, c.id",
    "select o.id, c.name from orders o cross join customers c": "id = o.id; name = c.name",
    "select o.id, c.name from orders o, customers c where o.customer = c.id":
        "id = o.id; name = c.name; ~FILTER o.customer, c.id",
    "select o.id from orders o left semi join customers c on o.customer = c.id": "id = o.id; ~JOIN o.customer, c.id",
    "select o.id from orders o left anti join customers c on o.customer = c.id and c.score > 1":
        "id = o.id; ~JOIN o.customer, c.id, c.score",
    "select a.id, b.name from customers a join customers b on a.region = b.region":
        "id = c.id; name = c.name; ~JOIN c.region",
    "select c.name, i.sku from customers c join orders o on o.customer = c.id join items i on i.order_id = o.id":
        "name = c.name; sku = i.sku; ~JOIN c.id, o.customer, o.id, i.order_id",
    "select o.id from orders o join customers c on upper(c.name) = o.status": "id = o.id; ~JOIN c.name, o.status",
    "select o.id from orders o join customers c on o.amount > c.score": "id = o.id; ~JOIN o.amount, c.score",
    "select c.name, t.total from customers c join "
    "(select customer, sum(amount) as total from orders group by customer) t on c.id = t.customer":
        "name = c.name; total << o.amount; ~JOIN c.id, o.customer; ~GROUP_BY o.customer",
    "select c.name from customers c join (select customer + 1 as k from orders) t on c.id = t.k":
        "name = c.name; ~JOIN c.id, o.customer",
    "select coalesce(c.name, o.status) as x from orders o left join customers c on o.customer = c.id":
        "x <- c.name, o.status; x ? c.name; ~JOIN o.customer, c.id",
    "select /*+ broadcast(c) */ o.id from orders o join customers c on o.customer = c.id":
        "id = o.id; ~JOIN o.customer, c.id",
    "select c.name from customers c join (values (1)) t(x) on c.id = t.x": "name = c.name; ~JOIN c.id",
    "select i.sku from items i join orders o on i.dims.box.d = o.id": "sku = i.sku; ~JOIN i.dims.box.d, o.id",
}  # fmt: skip

SETS: Final = {
    "select id, name from customers union all select id, status from orders":
        "id = c.id, o.id; name = c.name, o.status",
    "select id, name from customers union select id, status from orders":
        "id = c.id, o.id; name = c.name, o.status; ~GROUP_BY c.id, o.id, c.name, o.status",
    "select name as x from customers union all select upper(status) from orders union all select 'lit'":
        "x = c.name; x <- o.status",
    "select x + 1 as y from (select id as x from customers union all select amount from orders)":
        "y <- c.id, o.amount",
    "select x from (select id as x from customers union all select customer from orders) where x > 1":
        "x = c.id, o.customer; ~FILTER c.id, o.customer",
    "select id from customers where score > 1 union all select id from orders where amount > 2":
        "id = c.id, o.id; ~FILTER c.score, o.amount",
    "select id from customers intersect select customer from orders": "id = c.id; ~FILTER c.id, o.customer",
    "select id from customers intersect all select customer from orders": "id = c.id; ~FILTER c.id, o.customer",
    "select id from customers except select customer from orders": "id = c.id; ~FILTER c.id, o.customer",
    "select id from customers where score > 1 minus select customer from orders where status = 'x'":
        "id = c.id; ~FILTER c.id, c.score, o.customer, o.status",
    "select id, id as k from customers union all select amount, customer from orders":
        "id = c.id, o.amount; k = c.id, o.customer",
}  # fmt: skip

SUBQUERIES: Final = {
    "select id, (select max(amount) from orders) as m from customers": "id = c.id; m << o.amount",
    "select id, (select sum(amount) from orders o where o.customer = c.id) as m from customers c":
        "id = c.id; m << o.amount; m ? o.customer, c.id",
    "select (select max(amount) from orders where status = 'x') + score as m from customers":
        "m << o.amount; m <- c.score; m ? o.status",
    "select id from customers where id in (select customer from orders where status = 'x')":
        "id = c.id; ~FILTER c.id, o.customer, o.status",
    "select id from customers where id not in (select customer from orders)": "id = c.id; ~FILTER c.id, o.customer",
    "select id from customers c where exists (select amount from orders o where o.customer = c.id)":
        "id = c.id; ~FILTER o.customer, c.id",
    "select id from customers c where not exists "
    "(select 1 from orders o where o.customer = c.id and o.amount > c.score)":
        "id = c.id; ~FILTER o.customer, c.id, o.amount, c.score",
    "select id from customers where score > (select avg(amount) from orders)": "id = c.id; ~FILTER c.score, o.amount",
    "select id in (select customer from orders) as x from customers": "x <- c.id, o.customer",
    "select exists (select 1 from orders o where o.customer = c.id) as y from customers c": "y ? o.customer, c.id",
    "select id from customers where id in "
    "(select customer from orders where id in (select order_id from items where qty > 1))":
        "id = c.id; ~FILTER c.id, o.customer, o.id, i.order_id, i.qty",
    "select id from customers where (id, name) in (select customer, status from orders)":
        "id = c.id; ~FILTER c.id, c.name, o.customer, o.status",
    "select region from customers group by region having sum(score) > (select max(amount) from orders)":
        "region = c.region; ~GROUP_BY c.region; ~FILTER c.score, o.amount",
    "select region from customers group by region having exists (select 1 from orders where amount > max(score))":
        "region = c.region; ~GROUP_BY c.region; ~FILTER c.score, o.amount",
    "select k from (select j as k from (select id as j, score from customers where name = 'x') where score > 1)":
        "k = c.id; ~FILTER c.name, c.score",
    "select o.id from orders o join customers c on o.customer = c.id and c.score > (select max(qty) from items)":
        "id = o.id; ~JOIN o.customer, c.id, c.score, i.qty",
    "select c.id, l.total from customers c, "
    "lateral (select sum(amount) as total from orders o where o.customer = c.id) l":
        "id = c.id; total << o.amount; ~FILTER o.customer, c.id",
    "select l.x from customers c, lateral (select o.amount + c.score as x from orders o where o.customer = c.id) l":
        "x <- o.amount, c.score; ~FILTER o.customer, c.id",
    "select l.amount from customers c left join lateral (select amount from orders where customer = c.id) l "
    "on l.amount > c.score":
        "amount = o.amount; ~FILTER o.customer, c.id; ~JOIN o.amount, c.score",
    "select l.n, l.d from customers c, lateral (select c.name as n, upper(c.region) as d) l":
        "n = c.name; d <- c.region",
    "select l.d from items i, lateral (select i.dims.box.d as d) l": "d = i.dims.box.d",
    "select if(id in (select customer from orders), name, region) as x from customers":
        "x <- c.name, c.region; x ? c.id, o.customer",
}  # fmt: skip

COMMON: Final = {
    "with t as (select id, score from customers) select a.id, b.score from t a join t b on a.id = b.id":
        "id = c.id; score = c.score; ~JOIN c.id",
    "with a as (select id, upper(name) as n from customers), b as (select n from a where id > 1) select n from b":
        "n <- c.name; ~FILTER c.id",
    "with t as (select customer from orders where amount > 1) "
    "select id from customers where id in (select customer from t)":
        "id = c.id; ~FILTER c.id, o.customer, o.amount",
    "with t as (select * from items) select id from customers": "id = c.id",
    "select k from (with t as (select id from customers) select id as k from t)": "k = c.id",
    "with t as (select id from customers) "
    "select id from (with t as (select customer as id from orders) select id from t)":
        "id = o.customer",
    "with t as (select max(score) as m from customers) select id, (select m from t) as m from orders":
        "id = o.id; m << c.score",
    "with t as (select id, name from customers) select cast(id as string) as id from t union all select name from t":
        "id <- c.id; id = c.name",
    "select n from good": "n <- c.name; ~FILTER c.score",
    "select m from better": "m <- c.name; ~FILTER c.score, c.id",
    "select double, upper(status) as s from fleeting": "double <- o.amount; s <- o.status",
    "select k from global_temp.everywhere": "k = o.id",
    "select g.n, o.id from good g join orders o on g.id = o.customer":
        "n <- c.name; id = o.id; ~FILTER c.score; ~JOIN c.id, o.customer",
}  # fmt: skip

GENERATORS: Final = {
    "select order_id, explode(tags) as t from items": "order_id = i.order_id; t <- i.tags; ~FILTER i.tags",
    "select order_id, p, t from items lateral view posexplode(tags) x as p, t":
        "order_id = i.order_id; p <- i.tags; t <- i.tags; ~FILTER i.tags",
    "select sku, k, v from items lateral view outer explode(attrs) x as k, v":
        "sku = i.sku; k <- i.attrs; v <- i.attrs; ~FILTER i.attrs",
    "select inline(parts) from items": "p <- i.parts; q <- i.parts; ~FILTER i.parts",
    "select stack(2, sku, qty, 'x', order_id) as (a, b) from items": "a = i.sku; b = i.qty, i.order_id",
    "select json_tuple(sku, 'a', 'b') as (a, b) from items": "a <- i.sku; b <- i.sku",
    "select a, b from items lateral view explode(tags) x as a lateral view explode(split(a, ',')) y as b":
        "a <- i.tags; b <- i.tags; ~FILTER i.tags",
    "select e from items lateral view explode(tags) x as e where e > sku": "e <- i.tags; ~FILTER i.tags, i.sku",
    "select explode(sequence(1, qty)) as e from items": "e <- i.qty; ~FILTER i.qty",
    "select explode(array(sku, 'x')) as e from items": "e <- i.sku",
    "select i.order_id, t.x from items i, lateral explode(i.tags) as t(x)":
        "order_id = i.order_id; x <- i.tags; ~FILTER i.tags",
    "select customer, a, b from (select customer, status, amount from orders) "
    "pivot (sum(amount) for status in ('a' as a, 'b' as b))":
        "customer = o.customer; a << o.amount; a ? o.status; b << o.amount; b ? o.status; "
        "~GROUP_BY o.customer, o.status",
    "select * from customers unpivot (val for k in (id, score))":
        "name = c.name; region = c.region; k none; val = c.id, c.score; ~FILTER c.id, c.score",
    "select * from customers unpivot include nulls ((a, b) for k in ((id, name), (score, region)))":
        "k none; a = c.id, c.score; b = c.name, c.region",
    "select transform(id, name) using 'cat' as (a, b) from customers": "a <- c.id, c.name; b <- c.id, c.name",
}  # fmt: skip

NESTED: Final = {
    "select dims.w, dims.box.d as d, dims.box from items": "w = i.dims.w; d = i.dims.box.d; box = i.dims.box",
    "select DIMS.BOX.D as d from items": "d = i.dims.box.d",
    "select s.a, s.b from (select named_struct('a', qty, 'b', upper(sku)) as s from items)": "a = i.qty; b <- i.sku",
    "select named_struct('a', qty, 'b', sku).b as b from items": "b = i.sku",
    "select struct(qty, sku) as s from items": "s <- i.qty, i.sku",
    "select s.x.w from (select struct(dims as x) as s from items)": "w = i.dims.w",
    "select k.d from (select s.box as k from (select dims as s from items))": "d = i.dims.box.d",
    "select tags[0] as t, attrs['k'] as a, parts.p as p, parts[0].q as q, size(tags) as n from items":
        "t <- i.tags; a <- i.attrs; p <- i.parts; q <- i.parts; n <- i.tags",
    "select d.w from (select dims as d from items union all select dims from items)": "w = i.dims.w",
    "select from_json(sku, 'a int').a as a from items": "a <- i.sku",
    "select sku from items where dims.w > dims.box.d": "sku = i.sku; ~FILTER i.dims.w, i.dims.box.d",
    "select s.a from (select struct(id as a, name as b) as s, score from customers) where s.b = 'x'":
        "a = c.id; ~FILTER c.name",
    "select max(dims.w) as m from items group by dims.h": "m << i.dims.w; ~GROUP_BY i.dims.h",
    "select transform(tags, x -> concat(x, sku)) as t from items": "t <- i.tags, i.sku",
    "select filter(tags, x -> x > sku) as t from items": "t <- i.tags; t ? i.sku",
    "select aggregate(sequence(1, qty), 0, (a, x) -> a + x) as s from items": "s <- i.qty",
    "select exists(tags, x -> x = sku) as e from items": "e <- i.tags, i.sku",
    "select transform(parts, x -> x.p + size(filter(tags, y -> y = sku))) as t from items":
        "t <- i.parts, i.tags; t ? i.sku",
    "select max(struct(score, name)).name as n from customers group by region":
        "n << c.name; n ? c.score; ~GROUP_BY c.region",
    "select s.name as n, s.score as k from (select max(struct(score, name)) as s from customers)":
        "n << c.name; n ? c.score; k << c.score",
    "select e.x, e.y from (select explode(array(named_struct('x', qty, 'y', sku), "
    "named_struct('x', order_id, 'y', 'k'))) as e from items)":
        "x = i.qty, i.order_id; y = i.sku",
    "select inline(array(named_struct('x', qty, 'y', sku), named_struct('x', order_id, 'y', 'k'))) from items":
        "x = i.qty, i.order_id; y = i.sku",
    "select s.a from (select struct(id as a, name as b) as s from customers "
    "union all select struct(order_id as a, sku as b) from items)":
        "a = c.id, i.order_id",
    "select s.b.c from (select first(struct(id as a, struct(name as c, score as d) as b)) as s from customers)":
        "c << c.name",
}  # fmt: skip

WINDOWS: Final = {
    "select id, row_number() over (partition by customer order by placed) as n from orders":
        "id = o.id; n over o.customer, o.placed",
    "select sum(amount) over (partition by customer) as s from orders": "s << o.amount; s over o.customer",
    "select lag(amount, 1, 0) over (order by placed) as l from orders": "l <- o.amount; l over o.placed",
    "select id, amount from "
    "(select *, row_number() over (partition by customer order by placed desc) as n from orders) where n = 1":
        "id = o.id; amount = o.amount; ~FILTER o.customer, o.placed",
    "select amount / sum(amount) over (partition by customer) as r from orders":
        "r <- o.amount; r << o.amount; r over o.customer",
    "select customer, rank() over (order by sum(amount)) as r from orders group by customer":
        "customer = o.customer; r over o.amount; ~GROUP_BY o.customer",
    "select first_value(status) over w as f, ntile(4) over w as t, percent_rank() over w as p from orders "
    "window w as (partition by customer order by placed)":
        "f << o.status; f over o.customer, o.placed; t over o.customer, o.placed; p over o.customer, o.placed",
    "select case when row_number() over (order by id) = 1 then name end as x from customers": "x <- c.name; x ? c.id",
    "select sum(amount) over (order by placed rows between 1 preceding and current row) as s, id from orders":
        "s << o.amount; s over o.placed; id = o.id",
    "select max(n) as m from (select row_number() over (partition by region order by id) as n from customers)":
        "m over c.region, c.id",
}  # fmt: skip

FUNCTIONS: Final = {
    "select shout(name) as s, id from customers": "s <- c.name; id = c.id",
    "select id from customers where shout(region) = 'x'": "id = c.id; ~FILTER c.region",
    "select shout(name || region) as s from customers": "s <- c.name, c.region",
}

QUERIES: Final = {
    **PROJECTIONS,
    **CHOICES,
    **AGGREGATES,
    **JOINS,
    **SETS,
    **SUBQUERIES,
    **COMMON,
    **GENERATORS,
    **NESTED,
    **WINDOWS,
    **FUNCTIONS,
}
