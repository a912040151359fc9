"""Snippets for the branches of the template reader that the products of snippets.py do not reach: odd
numbers and formats, letters of other scripts, arguments that a function refuses, unfinished tags."""

# Of a variable: jinja2 computes constants beforehand and writes what it cannot read.
INF, NAN = "(e ~ 'inf')|float", "(e ~ 'nan')|float"

NUMBER_TEXTS = [
    "-5", "+5", "+", "-", "0x1F", "0X1f", "0o17", "0b101", "0b102", "0x", "0_7", "1_000", "1__0", "_1", "1_",
    "99999999999999999999", "-99999999999999999999", "nan", "-inf", "+inf", "Infinity", "+-1", "+1.5",
    "1_0.5_0", "1_.5", "._5", "1e400", "-1e400", "1e-400", "-1e-400", "1e5", "--1", "1.5.2", "e", "1e", " 7\u2003",
    "\u00a07\u1680", "\u20285", "5\u3000", "0x_f",
]
NUMBERS = ["i", "n", "f", "g", "h", "tiny", "whole", "t", "big", INF, "-" + INF, NAN, "5", "0", "-0.0", "65", "0x110000",
           "-9223372036854775807 - 1", "1e19", "missing", "none_value", "s", "l"]
PERCENT = ["%i", "%u", "%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%+ d", "% +d", "%#x", "%#X", "%x", "%o", "%#o", "%c", "%F", "%E",
           "%G", "%#g", "%.0f", "%.3e", "%10.2f", "%.400f", "%s", "%.2s", "%r", "%y", "%", "%5", "%.", "%%", "%(a)s"]
SPECS = ["", "d", "5", "<5", ">5", "^5", "=5", "*<8", "é^9", "=+9", "+", " ", "#x", "#X", "#o", "#b", "x", "X", "b", "o", "c", "n", "05",
         "<05", ",", "_", ",d", ".2f", ",.2f", "e", "E", "g", "G", "F", "%", ".1%", ".3", ".3s", "s", "10s", "=5s", ".2d", "dd", "y", "010.2f"]
LETTERS = ["ǅ", "ʰ", "ª", "ⓐ", "Ⓐ", "Ⅳ", "ⅳ", "²", "³", "¹", "⁰", "⁴", "₃", "①", "⑴", "⒈", "❶", "➀", "➊", "½", "四", "漢", "٣", "é",
           "A1", "a b", "Ab Cd", "AB", "ab", "aB", "_", "A\u0301", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f",
           "\u205f", "\u3000", "\u001c", "ΑΣ", "ΑΣ.", "ΑΣ'Α", "Α.Σ", "Σ", ".Σ", "Α\u0301Σ", "Α\u00adΣ", "ΑʰΣ", "Α^Σ", "Α:Σ", "Α·Σ", "Α’Σ", "Α‘Σ", "Α․Σ",
           "Α‧Σ", "ΑΣ1", "ǅΣ", "Α\u20ddΣ", "ßa", "ŉ", "İ", "ǄA", "aǅ", "1A"]
PROPERTIES = ["isalpha()", "isdecimal()", "isdigit()", "isnumeric()", "isspace()", "isupper()", "islower()", "istitle()", "isascii()",
              "isalnum()", "upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "split()"]

EXPRESSIONS = r"""
('9' * 400)|float
('-' ~ '9' * 400)|float
('0.' ~ '0' * 400 ~ '1')|float
('0.' ~ '0' * 400 ~ '1e5')|float
('9' * 400 ~ 'e-5')|float
('9' * 400 ~ '.5e+5')|float
'1e99999999999999999999'|float
'1e-99999999999999999999'|float
'0e99999999999999999999'|float
el|map('upper')|first
l|map('string')|first
(d|attr('items'))()|list
d|attr('b')
'{:f}'.format(-((e ~ 'nan')|float))
'{:F}'.format((e ~ 'inf')|float)
range(start=1, stop=3)|list
range(5, stop=3)|list
l. 1.5
nested. 0
nested.0.0
d.items().count is defined
d.keys().index is defined
-628187468.2105646 // -0.7582200803883872
((e ~ 'nan')|float) ** 2.5
2.5 ** ((e ~ 'nan')|float)
((e ~ 'inf')|float) ** 2.5
2.5 ** ((e ~ 'inf')|float)
d.items() == d.items()
d.keys() == d.keys()
d.keys() == {'a': 0, 'A': 0, 'b': 0}.keys()
d.keys() == ed.keys()
d.keys() == {'a': 0, 'A': 0, 'c': 0}.keys()
d.values() == d.values()
d.keys() == d.keys()|list
[] == ed.keys()
d.items() == ed.keys()
ed.items() == ed.keys()
(l|map('string')) == (l|map('string'))
deep.items() == deep.items()
s|upper()()
s is eq 'x'
i is eq 7.0
ed is eq {}
el is eq []
range(**{}, 1)
d.items()[1:2]
namespace() is callable
'a_b _c'|wordcount
'_'|wordcount
1 if cycler('a') else 2
1 if namespace() else 2
f is sameas f
f is sameas g
i is sameas i
s|center(5, width=6)
['\U000e0001\u200b\x01']
l[-9:]
l[-9::-1]
range(5, a=1)|list
cycler('a', b=1).next()
'x' % 5.5
'{:F}'.format(1.5)
'{:f}'.format((e ~ 'nan')|float)
'{:#d}'.format(5)
'{:#}'.format(5)
'{:>}'.format('a')
'{:<5}'.format(5)
'{:_}'.format('a')
'{:#}'.format('a')
'%F' % 1.5
0.0 ** 2
0 ** 2.5
(e ~ 'inf')|float ** 2.5
2.5 ** (e ~ 'inf')|float
n ** (e ~ 'inf')|float
range(3) == range(4)
(1, 2) == [1, 2]
loop is iterable
5 is callable
'nope' is test
'nope' is filter
'a\nb'.splitlines(false)
l[-9:2]
l[2:-9:-1]
i[1:2]
missing[1:2]
{[1]: 2}
{{}: 2}
d[[1]]
d[{'a': 1}]
1.5 == true
true == 1.0
1.5|round is float
'+' ~ 1
foo(*[1], **{'a': 1})
range(**{'a': 1}, *[1])
1e-400|float
'1e'|float
'1e400x'|float
'9e999'|float
'-9e-999'|float
[]|sort(attribute=0)
l|map(attribute=none)|list
l|sort(attribute=0)
rows|map('upper')|list
['a']|map('nope')|list
['a']|select('nope')|list
0
5
1_000_000
1.5.5
l.0.5
s.'a'
s[{}]
joiner
5 if
'5'|int(base=2)
'101'|int(0, 2)
'17'|int(0, 8)
'0x1f'|int(0, 16)
'1f'|int(0, 16)
'0x1f'|int(0, 0)
'0b11'|int(0, 0)
'0o11'|int(0, 0)
'11'|int(0, 0)
'0x1f'|int(0, 8)
'z'|int(5, 16)
'z'|int(5, 7)
1.5|round(400)
1.5|round(23)
1.5|round(-400)
-1.5|round(-400)
125.5|round(-1)
15|round(-1)
15|round(1, 'up')
1.25|round(1, 'ceil')
1.25|round(1, 'floor')
d|tojson(separators=(',', ':'))
d|tojson(separators=[','])
d|tojson(indent='--')
d|tojson(indent=2)
'\b\f\x7f\x1f é 😀'|tojson
'\b\f\x7f\x1f é 😀'|tojson(ensure_ascii=true)
[1e308 * 10, -1e308 * 10]|tojson
(1e308 * 10 - 1e308 * 10)|tojson
'\x7f'|tojson(ensure_ascii=true)
[]|first
el|last
l|map('string')|reverse|list
l|map('string')|random is defined
l|map('string')|last
l|selectattr|list
l|rejectattr()|list
'%.2d' % 5
l|batch(0)|list
l|batch(200000)|list
l|slice(0)|list
['a', 'b']|sum
['a']|sum(start='')
rows|map(attribute='zz', default=5)|list
rows|map(attribute='n')|list
nested|map(attribute='0')|list
nested|map(attribute='0.1')|list
nested|map(attribute='.')|list
nested|map(attribute=0)|list
rows|sort(attribute='v,n')|list
rows|unique(attribute='v')|list
d|dictsort(by='value')
d|dictsort(by='x')
d|dictsort(false, 'key', true)
l|max(attribute=0)
rows|max(attribute='v')
s|format(1)
'%s-%s'|format(1, 2)
'%(a)s'|format(a=1)
'%(a)s'|format(1, a=1)
'%s'|format
long|truncate
long|truncate(10)
long|truncate(2)
long|truncate(10, leeway=-1)
long|truncate(10, true, '...', 0)
'aZ09-_.~/ é'|urlencode
{'a b': 'c&d'}|urlencode
[('a', 1)]|urlencode
'%(a)s %(b)d' % {'a': 1, 'b': 2}
'%(a)s' % {'b': 2}
'%(a' % {'a': 2}
'%(a)s' % 5
'%s %s' % (1,)
'%s' % (1, 2)
'%s' % 1
'%s' % [1, 2]
'x' % 1
'x' % []
'x' % d
'x' % missing
'%c' % 'a'
'%c' % 'ab'
'%c' % 8364
'%c' % 55296
'%c' % (0 - 1)
'%c' % 1114112
'%d' % 'x'
'%f' % 'x'
'%d' % 1e30
'%d' % -3.9
'%x' % 1.5
'%-05d|' % 3
'%.3r' % 'abcdef'
'%5s|%-5s|' % ('a', 'b')
'{:5}|{:<5}|{:>5}|{:^5}|'.format('a', 'b', 'c', 'd')
'{0}{1}{0}'.format('a', 'b')
'{}{1}'.format('a', 'b')
'{a}{b}'.format(a=1, b=2)
'{a.b}{a[0]}'.format(a=1)
'{a[0]}{a[k]}'.format(a={'k': 1})
'{0[0]}{0[1]}'.format([1, 2])
'{0[x]}'.format([1, 2])
'{0[0}'.format([1])
'{0.}'.format(1)
'{0[]}'.format([1])
'{0[99999999]}'.format([1])
'{!r}{!s}{!a}'.format('a', 'b', 'c')
'{!r}'.format('a')
'{!s}'.format('a')
'{!}'.format('a')
'{!x}'.format('a')
'{{}}{}'.format(1)
'{'.format(1)
'}'.format(1)
'}}'.format(1)
'{}}'.format(1)
'{:{}}'.format(1, 5)
'{zz}'.format(a=1)
'{9999999}'.format(1)
'{5}'.format(1)
'{:d}'.format('a')
'{:d}'.format(true)
'{}'.format(true)
'{:5}'.format(true)
'{:x}'.format(true)
'{:f}'.format([1])
'{:5}'.format([1])
'{:}'.format(none_value)
'{:5}'.format(none_value)
'{:,}'.format(1234567.891)
'{:,}'.format(1234567)
'{:_}'.format(1234567)
'{:,.0f}'.format(1234567.891)
'{:z}'.format(1.5)
dict(1, 2)
dict([1, 2])
dict([(1, 2, 3)])
dict([[1, 2]])
dict([([1], 2)])
dict([({}, 2)])
dict(['ab', 'cd'])
dict(d, b=5)|dictsort
range(1, 5, 0)|list
range(stop=3)|list
range()|list
range(9223372036854775800, 9223372036854775807, 100)|list
range(5, 0, -2)
range(0, 10, 3)
range(3)
range(5)[1:4:2]|list
range(5)[1:4]|list
range(5) == range(5)
range(5)|reverse|list
strftime_now('%')
strftime_now('a%')
strftime_now('%d%f%z%Z|%Y %%')
cycler()
cycler(a=1)
cycler('a').zz
cycler('a', 'b').current
joiner().zz
joiner(1)()
joiner()() ~ 'x'
namespace(a=1, b=2).b
namespace({'a': 1}).a
namespace([('a', 1)]).a
namespace(5)
7 // -1
7 % -1
(-9223372036854775807 - 1) % -1
0.0 ** -1
0 ** -1
0 ** 0
2 ** -2
2 ** 0.5
(-8) ** 0.5
1e300 ** 2
(1e308 * 10) ** 2
(1e308 * 10 - 1e308 * 10) ** 2
1e308 * 10
-1e308 * 10
1e308 * 10 - 1e308 * 10
2 ** 63
(-2) ** 63
3 ** 40
3 ** 41
7.0 // 2
-7.5 // 2
7.5 % -2
-0.3 // 0.1
1.1 // 0.1
1e300 // 1e-300
5 // 0.0
5 % 0.0
(s|safe) * 2
('<'|safe) + '>'
('<'|safe) ~ '>'
('ab'|safe)[1:]
('ab'|safe).upper()
('ab'|safe).center(6)
'a' * 0
'a' * -5
[1] * 2
(1, 2) * 2
{'a': 1} == {'a': 2}
{'a': 1} == {'b': 1}
{'a': 1} == {'a': 1, 'b': 2}
[1, 2] == (1, 2)
(1, 2) == (1, 2)
(1, 2) < (1, 3)
[1, 2] < [1]
[1, 'a'] < [1, 2]
(1e308 * 10 - 1e308 * 10) < 1
(1e308 * 10 - 1e308 * 10) == (1e308 * 10 - 1e308 * 10)
[1] + (2,)
(1,) + (2,)
[1] < (2,)
[1] in {'a': 1}
{} in {'a': 1}
(1, 2) in {'a': 1}
d[[1]]
d[{}]
d[(1, 2)]
1 in l|map('int')
'a' in 5
foo(1, 2)
5(1)
s()
d.get(a=1)
d.get([1])
d.get({})
d.get('a', 5)
d.get()
{}.fromkeys([1])
range(3).count(1)
range(3).index(2)
range(3).copy
(1, 2).copy
(1, 2).count(1)
(1, 2).index(2)
(1, 2).index(2, -1)
(1, 2).index(5)
l.index(1, -2)
l.index(1, 0, -1)
l.index(1, 5)
l.copy()
'a b'.split(sep=' ')
'a\rb\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2028i\u2029j'.splitlines()
'a\nb\n'.splitlines(true)
'a\nb'.splitlines(keepends=true)
'abc'.find('b', -2)
'abc'.find('b', 1, 2)
'abc'.find('b', none, 2)
'abc'.find('b', 2, 1)
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.startswith('b', -2)
'abc'.endswith(('c',))
'abc'.endswith('b', 0, 2)
'abcabc'.replace('a', 'x', 1)
'abcabc'.replace('', '-')
'abcabc'.replace('', '-', 2)
'abc'.replace('a', 'x', 0)
'abc'.replace('a', 'x', -1)
'a'.center(5, 'xy')
'a'.center(5, '')
'a'.center(5, 'é')
'a'.center(4)
'a'.ljust(3, '.')
'a'.rjust(3, '.')
'+5'.zfill(5)
'-5'.zfill(5)
'5'.zfill(5)
'5'.zfill(0)
'a-b'.partition('')
'a-b'.partition('-')
'a-b'.rpartition('')
'a-b-c'.rpartition('-')
'a-b-c'.rsplit('-', 1)
'a-b-c'.split('-', 1)
'a  b'.split(none, 1)
'aXbX'.strip('X')
'a'.join([1])
'a'.join(['x', 'y'])
'\N{BULLET}'
'a\
b'
'\0\12\377\1234'
'\x4g'
'\x4'
'\u12'
'\ud800'
'\U0011ffff'
'\U0001f600'
'\U00110000'
'\q\8'
0x1f
0XfF
0o17
0b11
0b12
0x
0xg
0_1
1_000
1_
00
01
0.5
1.5e3
1.5E+3
1.5e-3
1e5
1e
1e+
1e400
1e-400
1.
1._5
l.0
nested.0.1
nested.0.0
l[0].5
l.1e5
5.5.5
é
[1, 2,]
(1, 2,)
{'a': 1,}
{1: 2}
[,]
(1 2)
{'a' 1}
l[1:2:]
l[::]
l[:]
l[::2]
l[1,2]
'a' 'b'
'a' "b" 'c'
True and False
None is none
none is None
not t
t not in l
1 not in l
t is not defined
t is divisibleby 3
6 is divisibleby(3)
i is eq 7
i is in [7]
i is sameas true
i is ne(7)
f is gt 1.5
l is in [[3, 1, 2]]
d is in [{'a': 1}]
i is 5
loop is iterable
missing is callable
range is callable
joiner() is callable
s is filter
'upper' is filter
5 is filter
'odd' is test
5 is test
s.upper is callable
d is mapping
range(3) is sequence
(l|map('int')) is sequence
(l|map('int')) is iterable
l|map('int')
d.keys()
d.values()
d.items()
missing == missing
none_value == none_value
1 == 1.0
t == 1
range == range
joiner() == 1
''|default('x', true)
''|default(default_value='x', boolean=true)
''|default('x', 'y', 'z')
''|default(zz=1)
s|upper(1)
dict(a=1, a=2)
range(*[1, 5])|list
range(*5)|list
dict(**5)
dict(**{'a': 1})|tojson
dict(a=1, **{'a': 2})
range(*[1], *[5])
dict(**{'a': 1}, **{'b': 2})
range(*[1], 5)
range(1, a=2, 5)
range(1, 5,)|list
"""

STATEMENTS = [
    "{% for x, in [[1], [2]] %}{{ x }}{% endfor %}", "{% set a, = l %}", "{% for (x,) in [[1]] %}{{ x }}{% endfor %}", "{% set (a, b,) = (1, 2) %}{{ a }}{{ b }}", "{% for x,) in [[1]] %}{% endfor %}", "{% set a, = [1] %}{{ a }}", "{{ 1_", "{{ 1_0", "{{ 0x", "{{ 0x1",
    "{% for x in l %}{{ loop is callable }}{{ 1 if loop else 2 }}{% endfor %}", "{% filter upper|trim|lower %} aB {% endfilter %}", "{% set a | upper | trim %} aB {% endset %}{{ a }}",
    "{% for x in l %}{{ loop is iterable }}{{ joiner() is iterable }}{{ loop.cycle(1, a=2) }}{% endfor %}", "{% call(a) 1.5 m() %}{% endcall %}", "{% 1.5 %}", "{% for 1.5 in l %}{% endfor %}", "{% if t %}{% set 1.5 = 2 %}{% endif %}", "{% print 1, %}", "{% for x in l, %}{{ x }}{% endfor %}",
    "{% with a = 1, %}{% endwith %}", "{% set a = 1, %}{{ a }}", "{% print i,s, %}", "{{ i, }}", "{{ (i,) }}", "{{ s.{ }}", "{{ 0", "{{ 5", "{{ 1e", "{{ 1e+", "{{ x_",
    "{% macro m(a, b=1) %}{{ varargs }}{{ kwargs }}{{ caller }}{% endmacro %}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}{{ m.arguments }}{{ m.defaults }}{{ m.zz }}",
    "{% macro m(a) %}{% endmacro %}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}",
    "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m() %}{% endmacro %}{{ m(a=1) }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a, b, c=3) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(b=1) }}{{ m(1, c=5) }}",
    "{% for x in l %}{{ loop.cycle() }}{% endfor %}", "{% for x in l %}{{ loop.cycle(a=1) }}{% endfor %}", "{% for x in l %}{{ loop.zz }}{% endfor %}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.length }}{{ loop.last }}{{ loop.nextitem }}{% endfor %}", "{% for x in l %}{{ loop is iterable }}{{ loop is callable }}{{ loop is sequence }}{% endfor %}",
    "{% for x of l %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for 1 in l %}{% endfor %}", 
    "{% for x in l %}{% if x %}{% break %}{% endif %}{% endfor %}", "{% generation %}{% break %}{% endgeneration %}",
    "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", "{% block a %}x{{ i }}{% endblock %}", "{% block a %}x{% endblock a %}",
    "{% block %}x{% endblock %}", "{% autoescape true %}{{ html }}{% endautoescape %}", "{% autoescape False %}{{ html }}{% endautoescape %}", "{% autoescape 5 %}{% endautoescape %}",
    "{% call 5 %}{% endcall %}", "{% call m %}{% endcall %}", "{% call m() %}", "{% with a %}{% endwith %}", "{% with a = %}{% endwith %}", "{% set %}", "{% set a %}", "{% set a = %}",
    "{% set a.b %}x{% endset %}", "{% set s.b = 1 %}", "{% set zz.b = 1 %}", "{% set a, b %}x{% endset %}", "{% set a | 5 %}{% endset %}", "{% set (a, b) = (1, 2) %}{{ a }}{{ b }}",
    "{% set l[0] = 1 %}", "{% filter %}x{% endfilter %}", "{% filter nope %}x{% endfilter %}", "{% filter upper %}x", "{% filter indent(2) %}a\nb{% endfilter %}", "{% print %}", "{% print i %}", "{% if %}{% endif %}",
    "{% if t %}a{% elif %}b{% endif %}", "{% else %}", "{% for x in el %}a{% else %}b{% endfor %}", "{% for x in l %}a{% else %}b{% endfor %}", "{% for x in 5 %}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for a, b in [5] %}{% endfor %}", "{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for c in u %}{{ c }}{% endfor %}",
    "{% raw %}a{% endraw", "{% raw %}a{%", "{% raw %}a{% endraw x %}b{% endraw %}c", "{% raw x %}a{% endraw %}", "{% rawx %}", "{%- raw %} a {%- endraw %} b", "{% raw -%}\n a {%+ endraw +%}\n b", "{% raw %}a{% end %}{% endraw -%}  b",
    "{%+ raw %}a{% endraw %}", "{% raw %}{%- x %}{% endraw %}", "{% raw -%}  a{% endraw %}", "{% raw", "{% raw ", "{##}", "{#-#}a", "a{#- x -#}  b", "{# x +#}\na", "{#+ x #}", "{%", "{%-", "{{-", "{{", "{% if t -", "{{ i -}",
    "{{ i -}}  x", "{{ i +}}", "{{- i +}}", "{% if t +%}\na{% endif %}", "a\r", "a\r\nb\r", "{{ 'a\r\nb' }}", "{{ ) }}", "{{ (] }}", "{{ } }}", "{{ {'a': {'b': 1}} }}", "{{ ({'a': 1}) }}", "{{ [(1)] }}", "{{ 'a }}", "{{ \"a\\\" }}", "{{ é }}", "{{ a! }}",
    "{{ i ? 1 }}", "{{ i;1 }}", "{{ 1 if }}", "{{ 1 if t else }}", "{{ 1 if no }}", "{{ 1 if no else 2 if no else 3 }}", "{{ x.5 }}", "{{ s. }}", "{{ s.'a' }}", "{{ s| }}", "{{ s|5 }}", "{{ s is }}", "{{ s is not }}", "{{ foo( }}", "{{ foo(1 }}", "{{ foo(a= }}",
    "{{ [1 }}", "{{ {1 }}", "{{ {1: }}", "{{ (1 }}", "{{ l[ }}", "{{ l[1 }}", "{{ l[1: }}", "{{ not }}", "{{ - }}", "{{ 1 + }}", "{{ 1 == }}", "{{ 1 and }}", "{{ 1 ~ }}", "{{ 1 // }}", "{{ 2 ** }}", "{{ 1 in }}", "{{ 1 not 2 }}",
    "{% set x = namespace(a=1) %}{% set x.a, y = 1, 2 %}{{ x.a }}{{ y }}", "{% set f = joiner %}{{ f()() }}|", "{% set g = l | map('string') %}{{ g }}", "{% set m = range(3) %}{{ m[1] }}{{ m[-1] }}{{ m[5] }}", "{{ [range(2, 8, 3), d.keys()] }}",
    "{% for x in l|map('string') %}{{ loop.length }}{% endfor %}", "{% for x in l|map('string') %}{{ loop.last }}{{ loop.revindex }}{% endfor %}", "{% for x in d.items() %}{{ x[0] }}{% endfor %}",
    "{{ d.items()|list }}", "{{ (d.items()|list)[0][1] }}", "{{ (rows|groupby('v'))[0].zz }}", "{{ (rows|groupby('v'))[0].list|length }}", "{{ (rows|groupby('v'))[0][0] }}", "{{ rows|groupby('v')|length }}", "{{ ['b', 'a']|sort(reverse=true) }}",
    "{% macro m(a, b=1, c=2) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1, 2, 3) }}{{ m(1, 2, 3, 4) }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(a, b=2) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}{{ caller.arguments }}{% endmacro %}{% call(a) m() %}{{ a }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
]


# Integers beyond 64 bits, which Python keeps: of variables, as arguments of tools come.
BIG = {
    "past": 2**63, "u64": 2**64 - 1, "least": -(2**63) - 1, "huge": 123456789012345678901234567890,
    "hugen": -123456789012345678901234567891, "exact": 10**20, "googol": 10**100, "giant": 10**400,
    "hugel": [10**20, 3, 2.5, -(10**20), 1e20, 10**20 + 1], "huged": {"id": 2**70, "n": {"k": [-(2**65)]}},
}
BIG_FILTERS = """tojson tojson(indent=2) tojson(ensure_ascii=true) string int int(9) float abs round round(1) default('D') default('D',true)
length upper list first safe e trim join format center(60) indent replace('1','one') truncate(9) batch(2) sum wordcount
title map('string')|list""".split()
BIG_TESTS = """defined none boolean integer float number string mapping iterable sequence callable odd even divisibleby(2) divisibleby(7)
divisibleby(-10) divisibleby(0) sameas(none) eq(7) ne(7) lt(5) gt(2) ge(exact) le(1e20) in(hugel) lower upper""".split()
BIG_EXPRESSIONS = """
hugel|sort|string
hugel|max
hugel|min
hugel|unique|list
hugel|tojson
hugel|join(',')
huged|tojson
huged|tojson(indent=2)
huged
huged.id == 1180591620717411303424 ~ ''
huged['n'].k[0]|string
huge ~ '|' ~ hugen
[huge, hugen]|map('abs')|list
[huge, exact]|select('odd')|list
[huge, exact]|reject('gt', 1e25)|list
{exact: 1}[1e20]
{1e20: 1}[exact]
{huge: 1}|tojson
{huge: 1, 2: 3}|tojson(sort_keys=true)
{huge: 1, hugen: 3}|dictsort
exact in [1e20]
1e20 in [exact]
hugel.index(exact)
hugel.count(1e20)
l[exact]
l[0:exact]
s[exact]
range(exact)
'x' * exact
exact * [1]
exact + 1
exact + 0.5
0.5 + exact
exact * 2.0
exact / 2
exact / 2.0
2.0 / exact
exact // 3.0
exact % 7
exact % -7
hugen % 7
hugen % -7
hugen % 0
7 % exact
exact % 7.0
exact ** 0.5
2.0 ** exact
giant + 0.5
giant|float
giant == giant
giant > 1e308
giant < (e ~ 'inf')|float
-giant < -((e ~ 'inf')|float)
exact == (e ~ 'nan')|float
exact < (e ~ 'nan')|float
exact >= (e ~ 'nan')|float
exact != 1e20
exact == 1e20
exact + 0.0 == exact
huge == 1.2345678901234568e29
huge < 1.2345678901234568e29
huge > 1.2345678901234568e29
past > 9223372036854775807
past == 9223372036854775807
least < -9223372036854775807
past < 9.223372036854775807e18
past == 9.223372036854775808e18
u64 == 18446744073709551616.0
u64 < 18446744073709551616.0
past > 0.5
least < -0.5
-past
-past == -9223372036854775807 - 1
-huge
- -huge
+huge
-(-past)
not huge
huge and 1
huge or 1
'yes' if huge else 'no'
'a' < huge
huge < 'a'
huge < none
huge.x
huge[0]
huge is sameas huge
'{:,}'.format(huge)
'{:_d}'.format(hugen)
'{:040d}'.format(huge)
'{:+}'.format(huge)
'{:>40}|'.format(hugen)
'{:<40}|'.format(huge)
'{:^40}|'.format(huge)
'{:x}'.format(huge)
'{:e}'.format(huge)
'{:.2f}'.format(exact)
'{:.2f}'.format(giant)
'{:c}'.format(huge)
'{:n}'.format(huge)
'%d' % huge
'%i' % hugen
'%040d' % hugen
'%+d' % huge
'% d' % huge
'%-40d|' % huge
'%40d|' % huge
'%x' % huge
'%o' % huge
'%c' % huge
'%s' % huge
'%r' % hugen
'%.2f' % huge
'%e' % huge
'%g' % giant
'%5.3s|' % huge
""".strip().split("\n")


def big_integers():
    scalars = [name for name, value in BIG.items() if isinstance(value, int) and name != "giant"]
    out = ["{{ %s|%s }}" % (v, f) for v in scalars for f in BIG_FILTERS]
    out += ["{{ %s is %s }}" % (v, t) for v in scalars for t in BIG_TESTS]
    out += ["{{ %s %s %s }}" % (a, op, b) for a in scalars for b in scalars + ["i", "n", "f", "h", "t"] for op in ("==", "!=", "<", "<=", ">", ">=")]
    out += ["{{ %s %s %s }}" % (a, op, b) for a in ("i", "f", "h", "t") for b in scalars for op in ("==", "<", ">=")]
    out += ["{{ %s }}" % e for e in BIG_EXPRESSIONS]
    return out + ["{% for k, v in huged.items() %}{{ k }}={{ v }};{% endfor %}", "{{ huge }}{{ giant }}"]


def edges():
    """Texts of templates."""
    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    out = ["{{ %s|%s }}" % (quoted(t), f) for t in NUMBER_TEXTS for f in ("int", "float", "int(9)", "int(9, 0)", "float(9)")]
    out += ["{{ %s %% (%s) }}" % (quoted(p), v) for p in PERCENT for v in NUMBERS]
    out += ["{{ %s.format(%s) }}" % (quoted("{:" + p + "}"), v) for p in SPECS for v in NUMBERS]
    out += ["{{ %s.%s }}" % (quoted(t), p) for t in LETTERS for p in PROPERTIES]
    out += ["{{ (%s)|%s }}" % (v, f) for v in (INF, "-" + INF, NAN, "1e19", "-1e19") for f in ("int", "abs", "round", "float", "string", "tojson", "round(2, 'ceil')")]
    out += ["{{ %s }}" % e for e in EXPRESSIONS.split("\n") if e and not e.endswith("\\") and e != "b'"]
    out += ["{{ 'a\\\nb' }}"] + STATEMENTS
    return out + big_integers()
