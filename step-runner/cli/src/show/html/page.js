'use strict';
// Draws the steps of a result: only the rows that are in view exist, so that ten thousand of them cost no more than fifty.
// Texts are only ever set as text: nothing of a result becomes a part of the page.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const steps = data.steps;
  const by = id => document.getElementById(id);
  const el = (tag, attributes, ...inside) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
    for (const part of inside.flat()) if (part !== undefined && part !== null) node.append(part);
    return node;
  };

  // ---- what the steps are to each other -------------------------------------------------------------------------
  steps.forEach((step, index) => { step.id = index; step.children = []; step.open = true; });
  steps.forEach(step => { if (step.parent !== undefined) steps[step.parent].children.push(step); });
  const end = data.took || 1;
  for (const step of steps) {
    step.from = step.start ?? 0;
    step.to = step.end ?? (step.start === undefined ? step.from : end);
  }
  // How a step ended, as one of five looks.
  const LOOKS = {ok: ['✓', 'succeeded'], bad: ['✗', 'failed'], allowed: ['!', 'failed, allowed to'], odd: ['■', 'cancelled'], run: ['▸', 'running']};
  const label = step => step.word || LOOKS[step.look][1];
  const failures = steps.filter(step => step.look === 'bad' && !step.children.some(child => child.look === 'bad') && step.id);
  const count = look => steps.filter(step => step.id && step.look === look && !step.children.length).length;

  const time = ms => {
    if (ms === undefined) return '';
    if (ms < 9.95) return ms.toFixed(1) + ' ms';
    if (ms < 999.5) return ms.toFixed(0) + ' ms';
    const seconds = ms / 1000;
    if (seconds < 60) return seconds.toFixed(2) + ' s';
    if (seconds < 3600) return Math.floor(seconds / 60) + 'm ' + String(Math.floor(seconds % 60)).padStart(2, '0') + 's';
    return Math.floor(seconds / 3600) + 'h ' + String(Math.floor(seconds / 60 % 60)).padStart(2, '0') + 'm';
  };
  const bytes = count => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (count >= 1024 && unit + 1 < units.length) { count /= 1024; unit += 1; }
    return (unit ? count.toFixed(1) : count) + ' ' + units[unit];
  };
  const path = step => {
    const names = [];
    for (let at = step; at && at.id; at = steps[at.parent]) names.unshift(at.name);
    return names.join(' › ');
  };

  // ---- the head -------------------------------------------------------------------------------------------------
  const root = steps[0];
  const chip = by('status');
  chip.textContent = LOOKS[root.look][0] + ' ' + label(root);
  chip.className = 'chip ' + root.look;
  by('title').textContent = data.title;
  const fact = (name, value) => { if (value) by('facts').append(el('div', {}, el('dt', {}, name), el('dd', {}, value))); };
  fact('took', root.end === undefined ? '' : time(data.took));
  fact('began', data.began && new Date(data.began).toLocaleString());
  fact('steps', String(steps.length - 1));
  fact('failed', count('bad') && String(count('bad')));
  fact('allowed failures', count('allowed') && String(count('allowed')));
  if (root.usage) {
    fact('CPU', time(root.usage.cpu));
    fact('memory peak', root.usage.memory && bytes(root.usage.memory));
    fact('disk', root.usage.disk && 'read ' + bytes(root.usage.disk[0]) + ', wrote ' + bytes(root.usage.disk[1]));
    fact('network', root.usage.network && 'received ' + bytes(root.usage.network[0]) + ', sent ' + bytes(root.usage.network[1]));
  }
  if (root.message || data.last) {
    by('why').hidden = false;
    by('why').append(root.message || data.last);
    if (failures.length) {
      const button = el('button', {type: 'button'}, 'Show ' + failures[0].name);
      button.onclick = () => choose(failures[0], true);
      by('why').append(button);
    }
  }

  // ---- which rows there are -------------------------------------------------------------------------------------
  const rows = by('rows');
  let shown = [], chosen, query = '', filter = 'all', only;
  if (steps.length > 500) for (const step of steps) if (step.depth) step.open = false;
  for (const step of failures) for (let at = steps[step.parent]; at; at = steps[at.parent]) at.open = true;

  const haystack = step => step.haystack ??= JSON.stringify([step.name, step.message, step.command, step.outputs, step.exports, step.inputs, step.digest]).toLowerCase();
  const slowest = [...steps].filter(step => step.id && !step.children.length).sort((a, b) => (b.to - b.from) - (a.to - a.from)).slice(0, 10);
  const matches = step => {
    if (filter === 'failed' && step.look !== 'bad' && step.look !== 'allowed' && step.look !== 'odd') return false;
    if (filter === 'slow' && !slowest.includes(step)) return false;
    return !query || haystack(step).includes(query);
  };
  const arrange = () => {
    only = undefined;
    if (query || filter !== 'all') {
      only = new Set();
      for (const step of steps) if (step.id && matches(step)) for (let at = step; at; at = steps[at.parent]) only.add(at);
    }
    shown = [];
    const walk = list => { for (const step of list) if (!only || only.has(step)) { shown.push(step); if (step.open || only) walk(step.children); } };
    walk([root]);
    by('none').hidden = shown.length > (only ? 0 : -1);
    rows.style.height = shown.length * height() + 'px';
    draw(true);
  };
  const height = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row')) || 30;

  // ---- drawing --------------------------------------------------------------------------------------------------
  const percent = ms => (100 * ms / end).toFixed(4) + '%';
  const gaps = step => {
    const waits = [];
    let at = step.from;
    for (const child of [...step.children].sort((a, b) => a.from - b.from)) {
      if (child.from - at > end / 400) waits.push([at, child.from]);
      at = Math.max(at, child.to);
    }
    if (step.to - at > end / 400) waits.push([at, step.to]);
    return waits;
  };
  const drawn = new Map();
  const row = (step, index) => {
    const look = step.look;
    const fold = el('button', {class: 'fold', type: 'button', tabindex: -1, 'aria-hidden': true}, step.children.length ? (step.open || only ? '▾' : '▸') : '');
    fold.onclick = event => { event.stopPropagation(); step.open = !step.open; arrange(); };
    const track = el('span', {class: 'track'});
    const bar = el('span', {class: 'bar ' + look + (step.children.length ? ' group' : '')});
    bar.style.left = percent(step.from);
    bar.style.width = percent(Math.max(step.to - step.from, 0));
    track.append(bar);
    if (step.children.length) for (const [from, to] of gaps(step)) {
      const gap = el('span', {class: 'gap'});
      gap.style.left = percent(from);
      gap.style.width = percent(to - from);
      track.append(gap);
    }
    const took = time(step.start === undefined ? undefined : step.to - step.from);
    const node = el('div', {
      class: 'row ' + look + (step === chosen ? ' chosen' : '') + (only && !matches(step) ? ' faint' : ''), id: 'step-' + step.id, role: 'treeitem',
      'aria-level': step.depth + 1, 'aria-selected': String(step === chosen), 'aria-expanded': step.children.length ? String(step.open) : undefined,
      title: path(step) || step.name,
    },
    el('span', {class: 'name'}, fold,
      el('span', {class: 'mark t-' + look, 'aria-label': label(step)}, LOOKS[look][0]),
      el('span', {class: 'text'}, step.name),
      look === 'allowed' ? el('span', {class: 'tag'}, 'allowed to fail') : undefined,
      step.children.length && !step.open && !only ? el('span', {class: 'more'}, '+' + step.below) : undefined),
    el('span', {class: 'lane'}, track, el('span', {class: 'took'}, took)));
    node.style.setProperty('--depth', Math.min(step.depth, 12));
    node.style.top = index * height() + 'px';
    node.onclick = () => choose(step, true);
    return node;
  };
  for (let index = steps.length - 1; index >= 0; index -= 1) steps[index].below = steps[index].children.reduce((sum, child) => sum + 1 + child.below, 0);
  const draw = (again, all) => {
    if (again) { drawn.clear(); rows.replaceChildren(); }
    const size = height(), top = -rows.getBoundingClientRect().top;
    const first = all ? 0 : Math.max(0, Math.floor(top / size) - 12);
    const last = all ? shown.length : Math.min(shown.length, Math.ceil((top + window.innerHeight) / size) + 12);
    for (const [index, node] of drawn) if (index < first || index >= last) { node.remove(); drawn.delete(index); }
    for (let index = first; index < last; index += 1) {
      if (drawn.has(index)) continue;
      const node = row(shown[index], index);
      drawn.set(index, node);
      rows.append(node);
    }
  };
  const ticks = () => {
    const width = by('ticks').clientWidth || 600;
    const rough = end / Math.max(2, Math.floor(width / 110));
    const power = 10 ** Math.floor(Math.log10(rough));
    const steps_of = rough >= 60000 ? [60000, 120000, 300000, 600000, 1800000, 3600000, 7200000, 21600000] : [1, 2, 5, 10].map(factor => factor * power);
    const step = steps_of.find(size => size >= rough) || rough;
    by('ticks').replaceChildren();
    for (let at = 0; at < end * 0.97; at += step) {
      const tick = el('span', {}, at ? time(at).replace('.00', '').replace(/(\.\d)0 s/, '$1 s').replace(' 00s', '') : '0');
      tick.style.left = percent(at);
      by('ticks').append(tick);
    }
  };

  // ---- one step -------------------------------------------------------------------------------------------------
  // Environments are written as what differs from the step before.
  const environment = step => {
    const env = new Map();
    for (let index = 0; index <= step.id; index += 1) {
      const change = steps[index].env;
      if (!change) continue;
      for (const name of change.gone || []) env.delete(name);
      for (const [name, value] of Object.entries(change.set || {})) env.set(name, value);
    }
    return [...env].sort((a, b) => (a[0] < b[0] ? -1 : 1));
  };
  const MARK = /(\[MASKED(?: [a-z]+ [0-9a-f]{8})?\])/;
  const text = value => {
    const plain = typeof value === 'string' ? value : JSON.stringify(value, null, 1);
    return plain.split(MARK).map((part, index) => index % 2 ? el('mark', {title: 'a secret'}, part) : part);
  };
  const table = entries => el('table', {}, el('tbody', {}, entries.map(([name, value]) => el('tr', {}, el('td', {}, name), el('td', {}, text(value))))));
  const part = (title, entries) => entries && entries.length ? [el('h3', {}, title), table(entries)] : [];
  const folded = (title, entries) => entries.length ? [el('details', {}, el('summary', {}, title + ' (' + entries.length + ')'), table(entries))] : [];
  const used = usage => {
    if (!usage) return [];
    const entries = [['CPU', time(usage.user) + ' in the program, ' + time(usage.system) + ' in the system']];
    if (usage.memory) entries.push(['memory peak', bytes(usage.memory)]);
    if (usage.disk) entries.push(['disk', 'read ' + bytes(usage.disk[0]) + ', wrote ' + bytes(usage.disk[1])]);
    if (usage.network) entries.push(['network', 'received ' + bytes(usage.network[0]) + ', sent ' + bytes(usage.network[1])]);
    if (usage.means) entries.push(['told by', usage.means]);
    return entries;
  };
  const details = step => {
    const panel = by('panel');
    const close = el('button', {class: 'close', type: 'button', 'aria-label': 'Close'}, '×');
    close.onclick = () => choose(undefined);
    const times = [];
    if (step.start !== undefined) {
      times.push(['took', time(step.to - step.from) + (step.end === undefined ? ' so far' : '')]);
      times.push(['began', time(step.from) + ' after the job']);
      const waited = gaps(step).reduce((sum, [from, to]) => sum + to - from, 0);
      if (step.children.length && waited) times.push(['waited', time(waited) + ' in which none of its steps ran']);
    }
    panel.replaceChildren(...[
      close,
      el('h2', {}, el('span', {class: 't-' + step.look}, LOOKS[step.look][0] + ' '), step.name),
      el('p', {class: 'path'}, label(step) + (path(step) ? ' · ' + path(step) : '')),
      step.message ? el('p', {class: 'fault ' + step.look}, text(step.message)) : undefined,
      step.filtered ? el('p', {class: 'path'}, text('filtered: ' + step.filtered)) : undefined,
      step.command ? [el('h3', {}, step.script ? 'Script' : 'Command'), el('pre', {}, text(step.command))] : [],
      part('Process', step.process),
      part('Outputs', Object.entries(step.outputs || {})),
      part('Exports', Object.entries(step.exports || {})),
      part('Inputs', Object.entries(step.inputs || {}).filter(([name]) => !(step.script && name === 'script'))),
      part('Time', times),
      part('Used', used(step.usage)),
      part('Limits', step.limits),
      part('Definition', step.definition),
      folded('Environment', environment(step)),
    ].flat().filter(node => node));
    panel.hidden = false;
    panel.scrollTop = 0;
  };
  const choose = (step, open) => {
    const before = chosen;
    chosen = step;
    if (step) for (let at = steps[step.parent]; at; at = steps[at.parent]) if (!at.open) { at.open = true; arrange(); }
    for (const node of drawn.values()) {
      const is = step && node.id === 'step-' + step.id;
      node.classList.toggle('chosen', Boolean(is));
      node.setAttribute('aria-selected', String(Boolean(is)));
    }
    if (!step) { by('panel').hidden = true; rows.removeAttribute('aria-activedescendant'); location.hash && history.replaceState(null, '', ' '); draw(true); return; }
    rows.setAttribute('aria-activedescendant', 'step-' + step.id);
    if (open || !by('panel').hidden) details(step);
    if (open) try { history.replaceState(null, '', '#' + step.id); } catch { /* a page of a sandbox has no address to change */ }
    const index = shown.indexOf(step), size = height(), top = rows.getBoundingClientRect().top + index * size;
    if (index >= 0 && (top < 90 || top > window.innerHeight - 2 * size)) window.scrollBy(0, top - window.innerHeight / 3);
    if (before !== step) draw(false);
  };

  // ---- hands ----------------------------------------------------------------------------------------------------
  for (const [name, title] of [['all', 'All'], ['failed', 'Failed'], ['slow', 'Slowest 10']]) {
    const button = el('button', {type: 'button', 'aria-pressed': String(name === 'all')}, title);
    button.onclick = () => {
      filter = name;
      for (const other of by('filters').children) other.setAttribute('aria-pressed', String(other === button));
      arrange();
    };
    by('filters').append(button);
  }
  by('search').oninput = () => { query = by('search').value.trim().toLowerCase(); arrange(); };
  const open = (is) => { for (const step of steps) step.open = is || step.depth < 1; arrange(); };
  by('expand').onclick = () => open(true);
  by('collapse').onclick = () => open(false);
  const move = by_rows => {
    const at = shown.indexOf(chosen);
    const next = shown[Math.min(shown.length - 1, Math.max(0, at < 0 ? 0 : at + by_rows))];
    if (next) choose(next);
  };
  const KEYS = {
    ArrowDown: () => move(1), ArrowUp: () => move(-1), PageDown: () => move(15), PageUp: () => move(-15), Home: () => choose(shown[0]), End: () => choose(shown[shown.length - 1]),
    ArrowRight: () => { if (!chosen) return; if (chosen.children.length && !chosen.open) { chosen.open = true; arrange(); } else move(1); },
    ArrowLeft: () => { if (!chosen) return; if (chosen.children.length && chosen.open) { chosen.open = false; arrange(); } else if (chosen.parent !== undefined) choose(steps[chosen.parent]); },
    Enter: () => chosen && choose(chosen, true), ' ': () => chosen && choose(chosen, true),
    n: () => { if (failures.length) choose(failures[(failures.indexOf(chosen) + 1) % failures.length], true); },
    '/': () => by('search').focus(),
    Escape: () => choose(undefined),
  };
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target === by('search')) {
      if (event.key === 'Escape') { by('search').value = ''; query = ''; arrange(); rows.focus(); }
      if (event.key === 'Enter' || event.key === 'ArrowDown') { event.preventDefault(); rows.focus(); move(0); }
      return;
    }
    if (target.tagName === 'BUTTON' && (event.key === 'Enter' || event.key === ' ')) return;
    if (target.tagName === 'SUMMARY') return;
    const key = KEYS[event.key];
    if (key) { event.preventDefault(); key(); }
  });
  window.addEventListener('scroll', () => requestAnimationFrame(() => draw(false)), {passive: true});
  window.addEventListener('resize', () => { ticks(); arrange(); });
  window.addEventListener('beforeprint', () => draw(true, true));
  window.addEventListener('afterprint', () => draw(true));
  const wanted = steps[Number(location.hash.slice(1))];
  ticks();
  arrange();
  if (location.hash && wanted) choose(wanted, true);
})();
