"""Expression and statement snippets of the template language, by the hundred: values times operators,
filters, tests and methods, and whole statements that are written out.
"""
import itertools

from snippet_edges import BIG, edges

VARIABLES = {
    "s": "Hello, World", "e": "", "w": "  a b\tc \n", "u": "naïve ☃ Straße ΑΣ 漢字 😀é", "q": "it's \"q\" \\ \n\x01",
    "digits": "42", "real": "4.75", "neg": "-7", "html": "<a href='x'>&\"</a>", "long": "one two three four five " * 4,
    "lines": "a\nb\r\n\nc\rd\u2028e", "i": 7, "z": 0, "n": -3, "big": 123456789012, "f": 2.5, "g": -0.1, "h": 1e22,
    "tiny": 1.5e-7, "whole": 3.0, "t": True, "no": False, "none_value": None,
    "l": [3, 1, 2], "el": [], "ls": ["b", "A", "a", "B"], "nested": [[1, [2, "x"]], {"k": None}],
    "mixed": [1, 2.5, True, None, "x"], "d": {"b": 1, "A": 2, "a": 3}, "ed": {},
    "deep": {"name": "f", "items": [1, 2], "x": {"y": {"z": "end"}}, "ünï": "cödé", "f": 1.0, "n": None},
    "rows": [{"n": "x", "v": 2, "g": "p"}, {"n": "Y", "v": 1, "g": "q"}, {"n": "z", "v": 3, "g": "P"}, {"n": "w", "v": 1}],
    "mostly": [0, 1, "", "a", None, [], [0], False, True],
}
NAMES = list(VARIABLES) + ["missing"]
VARIABLES |= BIG
FEW = ["s", "e", "u", "i", "n", "f", "t", "none_value", "l", "el", "ls", "d", "deep", "missing"]

FILTERS = """tojson tojson(indent=2) tojson(ensure_ascii=true) tojson(sort_keys=true) tojson(indent=1,sort_keys=true)
tojson(separators=(',',':')) tojson(indent=2,separators=(',',':')) tojson(true) tojson(indent='--') trim trim('Hd') length count join
join(',') join('-',attribute='n') default('D') default('D',true) d d(1) string upper lower capitalize title safe escape e
forceescape items|list list first last sort sort(reverse=true) sort(case_sensitive=true) unique|list reverse|list
dictsort dictsort(true) dictsort(by='value') dictsort(reverse=true) replace('a','XX') replace('l','L',1) replace('','-')
int int(9) int(base=16) int(base=2) float float(1.5) abs round round(1) round(2,'ceil') round(1,'floor') round(-1)
indent indent(2) indent(2,true) indent(2,true,true) indent('>>') batch(2)|list batch(3,'-')|list slice(2)|list slice(3,'-')|list
sum min max wordcount center(20) truncate(9) truncate(9,true) truncate(9,true,'…') truncate(5,leeway=0) urlencode
select|list reject|list select('string')|list select('number')|list reject('none')|list select('>',1)|list
select('in',[1,2])|list map('string')|list map('upper')|list map('length')|list map('default','?')|list format
attr('x') attr('items') groupby('g') unknown_filter xmlattr""".split()

TESTS = """defined undefined none boolean true false integer float number string mapping iterable sequence callable lower upper
odd even divisibleby(2) divisibleby(3) in([1,7,'e']) sameas(none) sameas(true) eq(7) ne(7) lt(5) le(7) gt(2) ge(7)
equalto('') lessthan(3) greaterthan(3) escaped""".split()

METHODS = """strip() lstrip() rstrip() strip('Hd ') lstrip('H') rstrip('d\\n') split() split(' ') split(None,1) split('l',1)
split(sep='o',maxsplit=1) rsplit() rsplit(' ',1) rsplit(None,1) splitlines() splitlines(true) startswith('H')
startswith(('x','H')) endswith('d') endswith(('d',' ')) startswith('e',1) endswith('l',0,3) replace('l','LL') replace('l','',1)
replace('','.') upper() lower() title() capitalize() swapcase() join(['a','b']) join('xy') join([]) join([1])
find('o') find('o',5) find('zz') rfind('o') index('o') index('zz') count('l') count('') count('l',3) removeprefix('He') removesuffix('ld')
isdigit() isdecimal() isnumeric() isalpha() isalnum() isspace() isupper() islower() istitle() isascii() center(20) center(15,'*')
ljust(14,'.') rjust(14,'.') zfill(15) partition(',') rpartition('o') partition('zz') format(1) nothing() encode()
get('a') get('zz') get('zz',5) get('name') keys()|list values()|list items()|list keys() values() items() copy() pop() append(1)
update({}) setdefault('q',1) index(1) count(1) index(99) pop('a') clear() insert(0,1)""".split("\n")
METHODS = [m for line in METHODS for m in line.split(") ")]
METHODS = [m if m.endswith(")") or "|" in m else m + ")" for m in METHODS]

BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]

EXPRESSIONS = """1 + 2 * 3 ** 2
2 ** 3 ** 2
-2 ** 2
(-2) ** 2
7 // 2
-7 // 2
7 // -2
-7 % 3
7 % -3
-7.5 % 2
7.5 // -2
0.1 + 0.2
1 / 3
10 / 5
1e3
1_000
0x1f
0b101
0o17
1.5e-7
1e16
1e15
123456789.123456789
-0.0
5 % 3.0
2 ** -1
2 ** 62
2 ** 64
9223372036854775807 + 1
1 / 0
1 // 0
1 % 0
0.0 / 0
1 < 2 < 3
1 < 3 < 2
3 > 2 > 1 == true
1 == 1.0
1 == true
'a' 'b' "c"
'a' ~ 1 ~ none ~ 2.0
'x' * 3
3 * [1, 2]
'%s-%d' % ('a', 5)
'%5.2f|%-6s|%06d|%+d|%x|%X|%o|%e|%g|%c|%%' % (3.14159, 'ab', 42, 7, 255, 255, 8, 12345.678, 0.0001, 'z')
'%(a)s %(b)r' % {'a': 1, 'b': 'x'}
'%s' % [1, 'a']
'%r' % 'it\\'s'
'%10s|%-10s|%.2s' % ('ab', 'cd', 'efgh')
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format('a', 'b')
'{a.x} {b[0]} {c!r}'.format(a={'x': 1}, b=[5], c='q')
'{:>8}|{:<8}|{:^8}|{:*^9}'.format('a', 'b', 'c', 'd')
'{:05d} {:,} {:.3f} {:e} {:x} {:#x} {:b} {:%} {:+d}'.format(42, 1234567, 3.14159, 12345.6789, 255, 255, 5, 0.25, 3)
'{{}}'.format()
'{} {}'.format(1)
s[0]
s[-1]
s[99]
s[1:4]
s[::-1]
s[::2]
s[-3:]
s[:-3]
s[5:2]
s[10:2:-3]
s[::-2]
u[6]
u[::-1]
u[3:9]
u[-2:]
u[-4:-1]
l[0]
l[-1]
l[9]
l[::-1]
l[1:]
l[:1]
l[-2:]
l[::2]
l[5::-1]
l[::0]
l['x']
l.0
nested[0][1][1]
nested.0.1.1
d['a']
d.a
d.zz
d['zz']
d.items
d['items']
deep.items
deep['items']
deep.x.y.z
deep.x.q
deep.x.q.r
deep['ünï']
missing
missing.x
missing['x']
missing()
missing + 1
missing ~ 'a'
missing == missing
missing == none
missing in [1]
1 in missing
not missing
missing is defined
missing.x is defined
missing | default('d') | upper
none
none.x
none + 1
none ~ 'x'
[none, true, 1.0, 'a', [], {}, ()]
(1,)
(1, 2)
()
{}
{'a': 1, 'b': [1, 2]}
{1: 'a', none: 'b', true: 'c', 2.5: 'd'}
{'a': 1, 'a': 2}
[1, 2] + [3]
[1, 2] == [1, 2]
(1, 2) == [1, 2]
{'a': 1} == {'a': 1.0}
[1, 2] < [1, 3]
'a' < 'b'
'a' < 1
[] or 'x'
[] and 'x'
'x' and 'y'
not []
not 'x' in 'xyz'
'x' not in 'xyz'
'☃' in u
1 in [1, 2]
'a' in d
'z' not in d
[1] in [[1]]
'yes' if t
'yes' if no
'yes' if no else 'no'
'a' if no else 'b' if no else 'c'
('yes' if no) is defined
('yes' if no) ~ 'x'
(1 if t else 2) + 3
range(5)
range(5) | list
range(2, 8, 3) | list
range(5, 0, -2) | list
range(3) | sum
range(200000) | list
range(5)[2]
range(1, 1) | list
dict(a=1, b=2)
dict(d, c=4)
dict([('x', 1), ('y', 2)])
namespace(a=1).a
namespace({'x': 5}).x
namespace(_x=1)
joiner() is callable
cycler('a', 'b').next()
d | dictsort | map(attribute=0) | join(',')
rows | map(attribute='n') | join(',')
rows | map(attribute='g', default='?') | list
rows | map(attribute='g') | list
rows | selectattr('g') | map(attribute='n') | list
rows | selectattr('g', 'defined') | map(attribute='n') | list
rows | selectattr('v', 'equalto', 1) | map(attribute='n') | list
rows | selectattr('v', '==', 1) | list | length
rows | rejectattr('v', 'gt', 1) | map(attribute='n') | list
rows | rejectattr('g', 'defined') | list
rows | sort(attribute='v') | map(attribute='n') | join
rows | sort(attribute='v,n') | map(attribute='n') | join
rows | sort(attribute='n', reverse=true) | map(attribute='n') | join
rows | unique(attribute='v') | map(attribute='n') | join
rows | sum(attribute='v')
rows | sum('v', 10)
rows | min(attribute='v')
rows | max(attribute='v')
rows | groupby('v')
rows | groupby('g', default='none')
(rows | groupby('v')) | map(attribute='grouper') | list
(rows | groupby('v')) | map(attribute='list') | map('length') | list
(rows | groupby('v'))[0].list | length
rows | map('tojson') | join
rows | selectattr('n', 'in', ['x', 'z']) | map(attribute='v') | list
rows | selectattr
rows | map
rows | selectattr('n') | length
(rows | selectattr('zz') | list) == []
(rows | selectattr('zz')) is defined
'T' if rows | selectattr('zz') else 'F'
rows | first
rows | last
ls | map('lower') | unique | list
ls | select('in', 'ab') | list
ls | reject('equalto', 'a') | list
mostly | select | list
mostly | reject | list
mostly | map('string') | list
mostly | select('none') | list
mixed | tojson
mixed | string
nested | tojson
nested | string
deep | tojson
deep | string
deep | tojson(indent=4)
{1: 2, none: 3, true: 4, 2.5: 5} | tojson
{(1, 2): 3} | tojson
h | tojson
tiny | tojson
[1e100, 1e-7, 0.1, 100.0, 1e21, 123456789012345680.0] | tojson
missing | tojson
range(3) | tojson
(1, 2) | tojson
d.items() | list
d.items() | tojson
d.keys() | join(',')
d.values() | sum
d.items() | first
d.items()[0]
d.items() | length
d | items | list
d | items | length
l | reverse
l | reverse | list
l | map('string')
s | reverse
s | list
u | list
d | list
i | list
s | first
s | last
'' | first
'' | last | default('x')
'a-b c(d' | title
'hello wORLD' | title
"they're" | title
"they're".title()
'ǆ ß ŉ' | upper
'ΑΣ ΣΑ' | lower
'ß'.capitalize()
'İ' | lower
'a,b,,c'.split(',')
''.split(',')
''.split()
' a  b '.split(' ')
'abc'.split('')
'\\u00a0x\\u3000'.strip()
'\\x1cx\\x1f'.strip()
'a\\x0bb\\x0cc\\x85d'.splitlines()
'\\n'
'\\t\\\\\\x41\\u2603\\U0001F600\\101'
'\\q'
"\\'"
'a' is string is defined
1 is odd
3.0 is odd
2 is even
'x' is odd
1 is number
true is number
true is integer
1.0 is float
'' is string
none is none
[] is iterable
1 is iterable
{} is mapping
'a' is sequence
range(2) is sequence
d.items() is sequence
(d | items) is sequence
range is callable
s.upper is callable
s.upper is defined
s.nope is defined
d.pop is defined
l.append is defined
d.get is defined
d.__class__ is defined
s.__class__
l.append(1)
d.update({'x': 1})
s is not string
i is not none and i > 5
i is divisibleby 7
i is divisibleby(7)
i is eq 7
i is in [7]
i is sameas 7
'safe' is filter
'nope' is filter
'odd' is test
html | e
html | safe | e
(html | safe) ~ '<'
(html | safe) + '<'
'<' + (html | safe)
html | e | e
(html | e) is escaped
html | escape | upper
[html | safe]
x
true.x
(1).x
i.x
i[0]
f[0]
t[0]
3.14.x
lines | wordcount
u | wordcount
lines.split('\\n')
lines | indent(2)
w | trim
w.strip()
w.split()
none | default('x')
none | default('x', true)
0 | default('x', true)
'' | default('x', true) ~ '!'
'1' | int + 1
'x' | int
'x' | int(5)
' 12 ' | int
'1_000' | int
'0x1f' | int(base=16)
'1e3' | int
'4.75' | int
'nan' | int
2.7 | int
-2.7 | int
true | int
none | int
none | int(3)
'3' | float
'1e400' | float
'inf' | float
'abc' | float
2.5 | round
3.5 | round
2.675 | round(2)
-2.5 | round
2.4 | round(0, 'ceil')
1234.5678 | round(-2)
5 | round
5 | round(1)
-3 | abs
true + true
-true
+true
+'a'
-'a'
not none
1 if missing else 2
[missing]
[missing] | tojson
{'a': missing}
(missing, 1)
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y, %A %B %H:%M:%S %j %y %p %%')
strftime_now('%d %B %Y')
raise_exception('no')
loop
range(3) | map('string') | join('-')
[1, 2, 3] | batch(2) | map('list') | list
'abc' | map('upper') | join
'abc' | select('in', 'ac') | list
d | map('upper') | list
l | select('odd') | list
l | reject('divisibleby', 3) | list
l | map('abs') | sum
l | sort | first
l | sort(reverse=true) | last
ls | sort
ls | sort(case_sensitive=true)
ls | sort(reverse=true)
ls | min
ls | max
el | min
el | max | default('none')
el | sum
el | first
el | join(',')
mixed | sort
mixed | join('|')
l | join(', ') ~ '.'
s.split(', ')[-1].lower()[::-1] | title
deep.x.y['z'].upper().lower() | length
(s ~ ' ' ~ i) | upper | replace('O', '0')
s.replace('o', '0').split('0') | join('|')
{'a': {'b': [1, 2, {'c': 'd'}]}}['a'].b[2].c
[[1, 2], [3, 4]] | map('sum') | list
[[1, 2], [3, 4]] | map('first') | list
[1, [2, [3]]] | tojson(indent=2)
{} | tojson(indent=2)
[[], {}] | tojson(indent=2)
'é"\\\\/\\u2028\\x7f' | tojson
'é😀' | tojson(ensure_ascii=true)
'é' | string
'it\\'s' | list | string
['it\\'s', "q\\"", 'b\\'"', '\\n', '\\x00', '\\x7f', 'é', '\\u200b', '\\u00ad', '😀']
1.0 | string
1e16 | string
1e-5 | string
0.0001 | string
123456789012345.6 | string
-1.5 | string
true | string
true and 1
0 or none
1 and none
(l, d) | length
*l
**d
1 +
a b
{'a' 1}
[1, 2
foo(1 2)
s | nope
s is nope
s.upper().lower
1..2
'abc
s[1, 2]""".split("\n")

STATEMENTS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ x }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{{ loop.index }}{{ loop.last }} {% else %}none{% endfor %}",
    "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in missing %}a{% else %}b{% endfor %}", "{% for x in none %}a{% endfor %}", "{% for x in 5 %}a{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", "{% for k, v in d|items %}{{ k }}={{ v }},{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}", "{% for k, v in l %}x{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in d|dictsort %}{{ a }}{{ b }}{% endfor %}",
    "{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}|{% endfor %}",
    "{% for x in l %}{% set q = x %}{% endfor %}{{ q }}", "{% set q = 1 %}{% for x in l %}{{ q }}{% set q = x %}{{ q }}{% endfor %}{{ q }}",
    "{% set ns = namespace(a=1) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}{{ ns }}{{ ns.zz }}",
    "{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.x }}{{ ns['x'] }}", "{% set q.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}",
    "{% if i > 5 %}a{% elif i > 3 %}b{% else %}c{% endif %}", "{% if no %}a{% elif t %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif no %}b{% elif z %}q{% else %}c{% endif %}", "{% if missing %}a{% endif %}", "{% if missing.x %}a{% endif %}",
    "{% if t %}{% set q = 5 %}{% endif %}{{ q }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1, 2, 3] %}", "{% set a = 1, 2 %}{{ a }}",
    "{% set x %}a{{ i }}b{% endset %}{{ x|upper }}", "{% set x | upper | replace('A', 'z') %}abc{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}", "{% set s = 'new' %}{{ s }}",
    "{% macro m(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=5) }}{{ m(b=1, a=9) }}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k=3) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(4) }}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(4) }}",
    "{% macro m() %}{{ later }}{% endmacro %}{% set later = 5 %}{{ m() }}", "{% macro m() %}{% set i = 9 %}{{ i }}{% endmacro %}{{ m() }}{{ i }}",
    "{% macro m() %}{{ caller() }}!{% endmacro %}{% call m() %}body{{ i }}{% endcall %}",
    "{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}-{{ b }}{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}body{% endcall %}", "{% macro m() %}x{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m is callable }}",
    "{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}{{ m('x') | length }}", "{% for x in l %}{% macro m() %}{{ x }}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% filter upper %}a{{ s }}b{% endfilter %}", "{% filter replace('a', 'b') | upper %}abc{% endfilter %}",
    "{% with a = 1, b = i %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}",
    "{% raw %}{{ x }} {% if %}{# c #}{% endraw %}", "a\n{% raw %}\n {{ x }}\n{% endraw %}\nb", "{%- raw -%}  {{ x }}  {%- endraw -%}  b",
    "{# comment #}a{# b\nc #}", "a {#- b -#} c", "a\n  {# b #}\nc", "{{ '{{' }}{{ '%}' }}{{ \"}}\" }}",
    "a\n{% if t %}\nb\n{% endif %}\nc\n", "a\n  {% if t %}  \n  b\n  {% endif %}\n  c\n\n", "a\n  {%- if t -%}\n  b\n  {%- endif -%}\n  c",
    "a\n  {%+ if t +%}\n  b\n  {%+ endif +%}\n  c", "  {{ i }}\n  {{- i -}}\n  {{ i }}\n", "x  {% if t %}  y  {% endif %}  z", "\n\n{% set a = 1 %}\n\n{{ a }}\n\n\n",
    "\t {% if t %}\n\ty\n\t{% endif %}\t\n", "{% if t %}\r\na\r\n{% endif %}\r\nb\rc", "a\n\n   {%- if t %}b{% endif -%}  \n\n c", "{% if t -%}  a  {%- endif %}",
    "a {% if t %}\n{% endif %} b", "{{ 1 }}\n\n{{ 2 }}\n", "{{ 'a\nb' }}", "{% for x in l -%}\n  {{ x }}\n{%- endfor %}", "  {% set a = 1 %}  {% set b = 2 %}\nx",
    "{%- for x in l %}\n    {%- if loop.first %}{{ '<' }}{% endif %}\n    {{- x }}\n{%- endfor %}\n",
    "{% generation %}a{{ i }}{% endgeneration %}b", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}",
    "{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %},{% endfor %}", "{% print i, s %}",
    "{% if t: %}a{% endif %}", "{% set x = [] %}{% set x = x + [1] %}{% set x = x + [2] %}{{ x }}", "{% set r = range(3) %}{% for x in r %}{{ x }}{% endfor %}{{ r }}",
    "{% set g = l | map('string') %}{{ g | join }}{{ g | join }}", "{% set g = l | select('odd') %}{{ g | first }}{{ g | list }}",
    "{% set j = joiner('; ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "{{ range(3) | list }}{{ dict(a=1) | tojson }}", "{% set f = range %}{{ f(2) | list }}", "{% set m = s.upper %}{{ m() }}",
    "{{ foo(*[1, 2]) }}", "{% macro foo(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ foo(*[1, 2]) }}{{ foo(**{'a': 3, 'b': 4}) }}{{ foo(1, **{'b': 2}) }}",
    "{% for x in l recursive %}{{ x }}{% endfor %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% from 'x' import y %}",
    "{% unknown %}", "{% if t %}", "{% endif %}", "{% for %}{% endfor %}", "{{ }}", "{% %}", "{{ i", "{% if t", "{# x", "{% raw %}x", "{{ i }", "}} %} #}", "{ { i } }", "{",
    "{% break %}", "{% for x in l %}{% break %}{% endfor %}x", "{% set true = 1 %}", "{% set 1 = 2 %}", "{% if t %}a{% else %}b{% else %}c{% endif %}",
    "{% for x in l %}{{ loop }}{% break %}{% endfor %}", "{{ loop.index }}", "{% for x in rows|sort(attribute='v') %}{{ x.n }}{% endfor %}",
    "{% for x in rows if x.g is defined and x.v > 1 %}{{ x.n }}{{ loop.revindex }}{% endfor %}", "{% for g in rows|groupby('v') %}{{ g.grouper }}:{{ g.list|map(attribute='n')|join(',') }};{% endfor %}",
    "{% for v, xs in rows|groupby('v') %}{{ v }}:{{ xs|length }};{% endfor %}", "{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{% set ns.stop = true %}{% endfor %}",
    "{% for x in l|reverse %}{{ loop.length }}{{ x }}{% endfor %}", "{% for x in l[::-1] %}{{ x }}{{ loop.index0 }}{% endfor %}", "{% for x in l[1:] %}{{ x }}{% endfor %}",
    "{% for a in rows %}{% for k, v in a|dictsort %}{{ k }}{{ v }}{% if not loop.last %},{% endif %}{% endfor %};{% endfor %}",
    "{{ '' if not t else 'x' }}{{ i if i is defined else 0 }}", "{% set x = {'a': [1, 2]} %}{{ x.a[1] }}{{ x['a'][0] }}{{ x.get('b', 'q') }}",
    "{{- '\\n' -}}", "{{ i }}{{- s -}}{{ i }}", "{{ s|length > 3 and i or 'x' }}", "{{ [1,2,3][1:]|map('string')|join('-') }}", "{% autoescape false %}{{ html }}{% endautoescape %}",
]


def snippets():
    """Texts of templates."""
    out = []
    out += ["{{ %s|%s }}" % (v, f) for v in NAMES for f in FILTERS]
    out += ["{{ %s is %s }}" % (v, t) for v in NAMES for t in TESTS]
    out += ["{{ %s.%s }}" % (v, m) for v in ["s", "e", "w", "u", "lines", "digits", "d", "deep", "l", "ls", "i", "missing"] for m in METHODS]
    out += ["{{ %s %s %s }}" % (a, op, b) for (a, b), op in itertools.product(itertools.product(FEW, FEW), BINARY)]
    out += ["{{ %s[%s] }}" % (v, k) for v in FEW for k in ["0", "-1", "2", "'a'", "'items'", "none_value", "missing", "1:", ":-1", "::-1", "-2:", "1:9:2", "3:0:-1", "f", "t", "'get'"]]
    out += ["{{ %s }}" % e for e in EXPRESSIONS]
    out += STATEMENTS
    out += edges()
    return out
