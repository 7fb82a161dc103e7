/** The docs page's own script. The key that the reader types stays in the page: nothing is stored or sent. */
export const DOCS_SCRIPT = `
const all = (selector) => [...document.querySelectorAll(selector)];
const find = document.querySelector('#find');
const key = document.querySelector('#key');
const none = document.querySelector('#none');

function fill() {
  const typed = key.value.trim().replace(/[\\\\"$\`]/g, '\\\\$&');
  for (const place of all('.cloud')) place.textContent = location.origin;
  for (const place of all('.key')) place.textContent = typed || '$KEY';
}

const words = new Map(all('.call').map((call) => [call, (call.id + ' ' + call.querySelector('summary').textContent).toLowerCase()]));
function search() {
  const wanted = find.value.toLowerCase().split(/\\s+/);
  for (const [call, text] of words) {
    call.hidden = !wanted.every((word) => text.includes(word));
    document.querySelector('nav a[href="#' + call.id + '"]').parentElement.hidden = call.hidden;
  }
  for (const part of all('main > section, nav section'))
    if (part.querySelector('.call, li')) part.hidden = !part.querySelector('.call:not([hidden]), li:not([hidden])');
  none.hidden = [...words.keys()].some((call) => !call.hidden);
}

function openLinked() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.closest('[hidden]')) {
    find.value = '';
    search();
  }
  if (target.matches('details')) target.open = true;
  target.scrollIntoView();
}

async function copy(button) {
  const text = button.parentElement;
  getSelection().selectAllChildren(text.firstElementChild);
  try {
    await navigator.clipboard.writeText(text.firstElementChild.textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  } catch {
    button.textContent = 'Selected';
  }
}

for (const example of all('pre.curl')) {
  const text = document.createElement('div');
  example.replaceWith(text);
  const button = document.createElement('button');
  button.textContent = 'Copy';
  button.addEventListener('click', () => copy(button));
  text.className = 'copied';
  text.append(example, button);
}
document.querySelector('#asked').hidden = false;
key.addEventListener('input', fill);
find.addEventListener('input', search);
addEventListener('hashchange', openLinked);
fill();
openLinked();
`;
