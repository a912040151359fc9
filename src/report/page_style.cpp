#include "report/page_style.h"

namespace hearth {

const char* page_style() {
  return R"css(
:root{color-scheme:light dark;
--page:#f7f6f4;--card:#fff;--ink:#1c1f23;--soft:#5b636d;--edge:#e4e1dc;--grid:#e6e4e0;
--c0:#1d63c4;--c1:#b4470a;--c2:#0b7268;--c3:#7a3fc0;--ember:#c2410c;
--good:#17692f;--good-bg:#e2f3e6;--bad:#a61b14;--bad-bg:#fbeae8;--quiet-bg:#efedea;
--h0:#fbf1e5;--h1:#f8dfbf;--h2:#f4c795;--h3:#eaa562;--h4:#d9803a;--h5:#bb5c1c;--h6:#8d3d0e;--h7:#571f07}
@media screen and (prefers-color-scheme:dark){:root{
--page:#101215;--card:#181b20;--ink:#e8eaed;--soft:#a4adb8;--edge:#2a2f37;--grid:#2b3038;
--c0:#7db3ff;--c1:#ffac6b;--c2:#5fd4c4;--c3:#c7abff;--ember:#ff9a5c;
--good:#7fd99a;--good-bg:#173322;--bad:#ff9d94;--bad-bg:#3a1a18;--quiet-bg:#252a31;
--h0:#221d1a;--h1:#35251a;--h2:#52321b;--h3:#77461c;--h4:#a2601f;--h5:#cc8034;--h6:#efad69;--h7:#ffe3be}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:72rem;margin:0 auto;padding:2rem 1.25rem 3rem}
h1{font-size:1.9rem;line-height:1.2;margin:.1rem 0 .4rem;overflow-wrap:anywhere;letter-spacing:-.015em}
h2,h3{font-size:1.05rem;line-height:1.3;margin:0 0 .3rem;overflow-wrap:anywhere}
p{margin:0 0 .6rem}
.mark{color:var(--ember);font-weight:650;font-size:.85rem;letter-spacing:.02em;margin:0}
.badge{display:inline-block;border-radius:1rem;padding:.1rem .7rem;font-size:.875rem;
font-weight:550;background:var(--quiet-bg)}
.badge.good{background:var(--good-bg);color:var(--good)}
.badge.bad{background:var(--bad-bg);color:var(--bad)}
header .pair{margin:0 0 .3rem}header .pair:last-child{margin-bottom:1.25rem}.versus{color:var(--soft);font-weight:400}.pair{overflow-wrap:anywhere}
.figures{display:flex;flex-wrap:wrap;gap:1px;
margin:1.2rem 0 1.25rem;background:var(--edge);border:1px solid var(--edge);border-radius:.75rem;
overflow:hidden}
.figure{background:var(--card);padding:.7rem .9rem;flex:1 1 8.5rem}
.figure dt{color:var(--soft);font-size:.8125rem}
.figure dd{margin:0}.figure strong{display:block;font-size:1.3rem;line-height:1.3;
font-weight:650;font-variant-numeric:tabular-nums}
.figure span{color:var(--soft);font-size:.8125rem;line-height:1.3;display:block}
.grid{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1.1rem}
.card{background:var(--card);border:1px solid var(--edge);border-radius:.75rem;
padding:1rem 1.1rem;margin:0;min-width:0}
.wide{grid-column:1/-1}.stack{display:flex;flex-direction:column;gap:1.1rem;min-width:0}
.stack .card:last-child{flex:1}.stack:empty{display:none}
figcaption p,section>p{color:var(--soft);font-size:.875rem;line-height:1.4;margin:0 0 .5rem}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:0 0 .5rem;padding:0;
font-size:.8125rem;min-height:1.2em}
.legend li{display:flex;align-items:center;gap:.4rem;min-width:0;overflow-wrap:anywhere}
.legend svg{width:28px;height:10px;flex:none;overflow:visible}
.legend.heat{gap:.15rem .8rem}.legend.heat svg{width:16px;outline:1px solid var(--edge)}
.unit{color:var(--soft);font-size:.75rem;margin:.1rem 0 .45rem}
.plot{position:relative;height:13rem;margin:0 .9rem 2.6rem 3.1rem;touch-action:pan-y}
.wide .plot{height:18rem}
.plot:focus-visible{outline:2px solid var(--c0);outline-offset:4px;border-radius:2px}
.plot>svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}
.plot.heat>svg{border:1px solid var(--edge)}
.yt,.xt,.xl{position:absolute;font-size:.75rem;line-height:1;color:var(--soft);white-space:nowrap;
font-variant-numeric:tabular-nums}
.yt{right:100%;margin-right:.5rem;transform:translateY(50%)}
.xt{top:100%;margin-top:.5rem;transform:translateX(-50%)}
.xl{top:100%;right:0;margin-top:1.6rem}
.plot.epochs{margin-bottom:3.7rem}.epochs .xl{margin-top:2.7rem}.xt.epoch{margin-top:1.6rem}
.xe{position:absolute;top:100%;left:-3.1rem;margin-top:1.6rem;font-size:.75rem;line-height:1;
color:var(--soft)}
.developers{grid-column:1/-1;font-size:1rem}.developers>summary{font-size:1.1rem;padding:.6rem 0}
path{vector-effect:non-scaling-stroke;fill:none}
.grid path.grid,path.grid{stroke:var(--grid);stroke-width:1}
path.soft{opacity:.6}
.line{stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.line.dashed{stroke-dasharray:6 4}
.dot{stroke-width:6.5;stroke-linecap:round}
.line.c0,.dot.c0,.band.c0{stroke:var(--c0)}.line.c1,.dot.c1,.band.c1{stroke:var(--c1)}
.line.c2,.dot.c2,.band.c2{stroke:var(--c2)}.line.c3,.dot.c3,.band.c3{stroke:var(--c3)}
.band{stroke-width:1;stroke-opacity:.35;fill-opacity:.2}
.band.c0{fill:var(--c0)}.band.c1{fill:var(--c1)}.band.c2{fill:var(--c2)}.band.c3{fill:var(--c3)}
.level{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:2 4}
.mark.event{stroke:var(--c3);stroke-width:1.5;stroke-dasharray:5 3}
path.mark.alarm{stroke:var(--bad);stroke-width:3}
.h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}
.h4{fill:var(--h4)}.h5{fill:var(--h5)}.h6{fill:var(--h6)}.h7{fill:var(--h7)}
.chart{display:flex;flex-direction:column;position:relative}.chart details{margin-top:auto}
.lanes{width:100%;height:auto;display:block;margin:.2rem 0 .6rem}
.lanes text{fill:var(--soft);font-size:11px}.lanes .lane{fill:var(--quiet-bg)}
.lanes path{vector-effect:none}.lanes .mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3}
.t0{fill:var(--c0)}.t1{fill:var(--c1)}.t2{fill:var(--c2)}.t3{fill:var(--c3)}.t4{fill:var(--soft)}
.legend .t0,.legend .t1,.legend .t2,.legend .t3,.legend .t4{stroke:none}
.scale{position:absolute;top:1rem;right:1rem;opacity:0;pointer-events:none}
.scales{float:right;margin:0 0 .2rem .6rem}
.scales label{display:inline-block;font-size:.8125rem;padding:.05rem .6rem;margin-left:.25rem;
border:1px solid var(--edge);border-radius:1rem;color:var(--soft);cursor:pointer}
.to-lin:checked~figcaption .for-lin,.to-log:checked~figcaption .for-log{background:var(--quiet-bg);
color:var(--ink);font-weight:550}
.to-lin:focus-visible~figcaption .for-lin,.to-log:focus-visible~figcaption .for-log{
outline:2px solid var(--c0);outline-offset:2px}
.to-lin:checked~.log,.to-log:checked~.lin{display:none}
.chart:not(.wide) .xt.odd{display:none}
.cursor{position:absolute;top:0;bottom:0;width:1px;background:var(--soft);pointer-events:none}
.readout{position:absolute;top:.3rem;z-index:2;pointer-events:none;background:var(--card);
border:1px solid var(--edge);border-radius:.45rem;box-shadow:0 2px 8px #0002;padding:.35rem .6rem;
font-size:.8125rem;line-height:1.45;font-variant-numeric:tabular-nums;width:max-content;
max-width:min(18rem,90%)}
.readout b{display:block;font-weight:600}
[hidden]{display:none}
table{border-collapse:collapse;width:100%;font-size:.875rem;line-height:1.4}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.32rem .8rem .32rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--edge);overflow-wrap:anywhere}
th:last-child,td:last-child{padding-right:0}
tbody tr:last-child>*{border-bottom:0}
thead th{color:var(--soft);font-weight:500;font-size:.8125rem}
tbody th{font-weight:500}
td{font-variant-numeric:tabular-nums}
.facts th{width:9.5rem;color:var(--soft)}
.memory td,.memory thead th+th,.sides td{text-align:right;white-space:nowrap}
.sides thead th{text-align:right}.sides tbody th{overflow-wrap:normal}
small{display:block;color:var(--soft);font-weight:400;font-size:.8125rem;line-height:1.35}
.memory .sum>*{font-weight:650;border-top:2px solid var(--edge)}
.bar{position:relative;height:.5rem;margin:.3rem 0 .15rem}
.bar i,.bar b{position:absolute;left:0;border-radius:2px}
.bar i{top:0;bottom:0;background:var(--h2)}.bar b{top:.125rem;bottom:.125rem;background:var(--ember)}
.events thead th,.options tbody th{width:11rem}.events thead th:nth-child(2){width:6rem}
.events thead th:last-child{width:auto}.events .time{white-space:nowrap;color:var(--soft)}
tr.alarm th{color:var(--bad)}
.sign{display:inline-block;width:1.15em;text-align:center;border-radius:50%;
background:var(--bad-bg);color:var(--bad);font-weight:700;font-size:.8rem}
code,pre{font:.8125rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--page);border:1px solid var(--edge);border-radius:.5rem;padding:.6rem .8rem;
margin:.3rem 0 0;white-space:pre-wrap;overflow-wrap:anywhere}
section h3{margin-top:.9rem}
details{margin-top:.4rem;font-size:.875rem}
summary{color:var(--soft);cursor:pointer;padding:.2rem 0}
summary:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
.tables{max-height:22rem;overflow:auto;display:flex;flex-wrap:wrap;gap:1.5rem}
.tables table{flex:1 1 14rem;width:auto}
.samples{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1rem}
.prompt{color:var(--soft)}
footer{color:var(--soft);font-size:.8125rem;margin-top:1.5rem}
@media (max-width:46rem){
main{padding:1.1rem .75rem 2rem}.grid{grid-template-columns:minmax(0,1fr);gap:.8rem}
.card{padding:.85rem .8rem}h1{font-size:1.5rem}
.figure{flex-basis:40%}
.wide .plot{height:14rem}.xt.odd{display:none}
.facts th{width:7rem}.options tbody th{width:auto}.stack{gap:.8rem}
.events thead{display:none}.events tr{display:block;padding:.4rem 0;border-bottom:1px solid var(--edge)}
.events tr>*{display:block;border:0;padding:0}.events td:empty{display:none}
.events td:nth-child(2)::before{content:"step "}}
@media print{body{background:#fff}main{max-width:none;padding:0}
.card,.figure{break-inside:avoid}.wide.card:has(table){break-inside:auto}
.scales,details:not([open]){display:none}}
)css";
}

}  // namespace hearth
