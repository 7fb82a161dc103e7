/**
 * The pages behind the one-use set-up link: a form that creates the first administrator, or an error page.
 */
import { PAGE_ICON, PAGE_STYLE } from '../../http/page.ts';
import { EMAIL_MAX_LENGTH, PASSWORD_MAX_LENGTH, PASSWORD_MIN_LENGTH } from '../account-fields.ts';

const STYLE = `${PAGE_STYLE}
main { max-width: 28rem; padding-top: 3rem; } main:has(#done:not([hidden])) { max-width: 40rem; } label { display: block; font-weight: 600; margin-bottom: .3rem; } .field { margin-top: 1.2rem; }
input:not([type=checkbox]) { width: 100%; padding: .55rem .7rem; font: inherit; color: inherit; background: var(--ground); border: 1px solid light-dark(#a29d92, #6f6b64); border-radius: 8px; }
input[aria-invalid=true] { border-color: var(--wrong); }
.field p { margin: .25rem 0 0; font-size: .9rem; } .show { margin-top: .5rem; font-weight: 400; }
button { padding: .5rem .9rem; font: inherit; font-weight: 600; color: #fff; background: var(--button); border: 0; border-radius: 8px; cursor: pointer; }
form > button { margin-top: 1rem; width: 100%; padding: .65rem; } button:disabled { opacity: .6; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; } h1:focus { outline: 0; }
.brand { display: flex; align-items: center; gap: .6rem; margin: 0 0 2rem; font-size: 1.05rem; font-weight: 650; }
:root { --wrong: light-dark(#b3261e, #ffb4ab); } .wrong, [role=alert] { color: var(--wrong); white-space: pre-line; }
.copied { display: flex; gap: .75rem; align-items: center; } pre { margin: .5rem 0; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.open { display: block; padding: .65rem; font-weight: 600; text-align: center; color: #fff; background: var(--button); border-radius: 8px; text-decoration: none; }
[hidden] { display: none; }
`;

/** The page fills in `{address}` and `{key}`. Each command can be run unchanged. */
const NEXT_STEPS: readonly (readonly [string, string])[] = [
  [
    'In a terminal, set the address of your cloud and your key:',
    `export CLOUD='{address}'\nexport KEY='{key}'`,
  ],
  [
    'Create a bucket and upload a file:',
    `curl "$CLOUD/api/buckets" -H "X-API-Key: $KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"name": "first-bucket"}'
echo hello > hello.txt
curl "$CLOUD/api/buckets/first-bucket/upload" \\
  -H "X-API-Key: $KEY" -F file=@hello.txt`,
  ],
  [
    'Create an account for somebody else; the response has its key:',
    `curl "$CLOUD/api/admin/accounts" -H "X-API-Key: $KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"username": "ada", "email": "ada@example.org"}'`,
  ],
];

/** The console's logo, and the name. */
const BRAND = `<p class="brand"><svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
<rect width="32" height="32" rx="8" fill="#0f5f5c"/>
<path d="M10.5 22.5a5 5 0 0 1-.6-9.96 6.6 6.6 0 0 1 12.6 1.5 4.3 4.3 0 0 1-.5 8.46z" fill="none" stroke="#fff" stroke-width="2.2" stroke-linejoin="round"/>
</svg>Cloudlet</p>`;

const SCRIPT = `
const find = (selector) => document.querySelector(selector);
const form = find('form');
const message = find('[role=alert]');
const inputs = [...form.querySelectorAll('input[name]')];

function showWrong(errors) {
  for (const input of inputs) {
    const error = errors.find((one) => one.field === input.name);
    input.setAttribute('aria-invalid', String(error !== undefined));
    find('#' + input.id + '-wrong').textContent = error ? input.labels[0].textContent + ' ' + error.message : '';
  }
  form.querySelector('[aria-invalid=true]')?.focus();
}

function showDone(account) {
  for (const pre of document.querySelectorAll('#done pre')) {
    pre.textContent = pre.textContent.replace('{address}', location.origin).replace('{key}', account.api_key);
  }
  for (const name of document.querySelectorAll('#done .name')) name.textContent = account.username;
  form.hidden = true;
  find('#done').hidden = false;
  find('#done h1').focus();
  history.replaceState(null, '', location.pathname);
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const body = Object.fromEntries(new FormData(form));
  body.token = new URLSearchParams(location.search).get('token') ?? '';
  const button = find('form > button');
  message.textContent = '';
  button.disabled = true;
  try {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch('/api/setup', { method: 'POST', headers, body: JSON.stringify(body) });
    const answer = await response.json();
    if (response.ok) {
      // Signed in, the console opens without asking again.
      const login = JSON.stringify({ username: body.username, password: body.password });
      await fetch('/api/login', { method: 'POST', headers, body: login })
        .then((entered) => entered.json())
        // The console finds the token of the session there.
        .then((entered) => {
          if (entered.session_token) localStorage.setItem('cloudlet-session', entered.session_token);
        })
        .catch(() => {});
      return showDone(answer);
    }
    const errors = answer.errors ?? [];
    showWrong(errors);
    if (errors.length === 0) message.textContent = [answer.detail, answer.hint].filter(Boolean).join('.\\n');
  } catch {
    message.textContent = 'Cloudlet does not respond. Is it still running?';
  } finally {
    button.disabled = false;
  }
});

find('#show').addEventListener('change', (event) => {
  find('#password').type = event.target.checked ? 'text' : 'password';
});

// Browsers give navigator.clipboard to https and localhost only.
async function copy(element) {
  if (navigator.clipboard) return navigator.clipboard.writeText(element.textContent);
  getSelection().selectAllChildren(element);
  if (!document.execCommand('copy')) throw new Error('not copied');
}

find('#copy').addEventListener('click', async () => {
  try {
    await copy(find('#key'));
    find('#copied').textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(find('#key'));
    find('#copied').textContent = 'Selected; press Ctrl+C to copy';
  }
});
`;

interface Field {
  readonly name: 'username' | 'email' | 'password';
  readonly label: string;
  readonly rule: string;
  /** Additional attributes of the input. */
  readonly attributes: string;
}

const FIELDS: readonly Field[] = [
  {
    name: 'username',
    label: 'User name',
    rule: '3 to 64 characters: letters from A to Z, digits, and . _ - (no spaces).',
    attributes:
      'autocomplete="username" autocapitalize="none" spellcheck="false" minlength="3" maxlength="64"',
  },
  {
    name: 'email',
    label: 'E-mail address',
    rule: 'You can also log in with it. Cloudlet sends no mail.',
    attributes: `type="email" autocomplete="email" maxlength="${EMAIL_MAX_LENGTH}"`,
  },
  {
    name: 'password',
    label: 'Password',
    rule: `${PASSWORD_MIN_LENGTH} to ${PASSWORD_MAX_LENGTH} characters. It cannot be reset by e-mail.`,
    attributes: `type="password" autocomplete="new-password" minlength="${PASSWORD_MIN_LENGTH}" maxlength="${PASSWORD_MAX_LENGTH}"`,
  },
];

function renderField({ name, label, rule, attributes }: Field): string {
  const show =
    name === 'password'
      ? '<label class="show"><input type="checkbox" id="show"> Show the password</label>'
      : '';
  return `<div class="field">
<label for="${name}">${label}</label>
<input id="${name}" name="${name}" required aria-describedby="${name}-rule ${name}-wrong" ${attributes}>
<p class="soft" id="${name}-rule">${rule}</p>
<p class="wrong" id="${name}-wrong"></p>${show}
</div>`;
}

function renderPage(title: string, main: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${PAGE_ICON}
<style>${STYLE}</style>
</head>
<body>
${main}
</body>
</html>
`;
}

/** The page of a valid link. */
export const SETUP_PAGE = renderPage(
  'Set up Cloudlet',
  `<main>
${BRAND}
<form>
<h1>Set up Cloudlet</h1>
<p class="soft">This creates the administrator account. The link works once.</p>
${FIELDS.map(renderField).join('\n')}
<p role="alert"></p>
<button>Create administrator</button>
</form>
<section id="done" hidden>
<h1 tabindex="-1">You are the administrator</h1>
<p><a class="open" href="/">Open the console</a></p>
<p>This is your API key. Anyone who has it can act as you, so keep it secret like a password.</p>
<pre id="key">{key}</pre>
<p class="copied"><button type="button" id="copy">Copy the key</button> <span id="copied" role="status"></span></p>
<p class="soft">To show it again, run <code>bin/cloudlet admin key --username <span class="name"></span></code> on the host.</p>
<h2>What to do next</h2>
${NEXT_STEPS.map(([text, commands]) => `<p>${text}</p>\n<pre class="commands">${commands}</pre>`).join('\n')}
<p><a href="/api/docs">API reference</a>, with an example of each call.</p>
</section>
</main>
<script>${SCRIPT}</script>`,
);

/** The page of an expired or unknown link, without a form. */
export const ENDED_LINK_PAGE = renderPage(
  'This set-up link does not work',
  `<main>
${BRAND}
<h1>This set-up link does not work</h1>
<p>It was used before, is older than 30 minutes, is incomplete, or was created before the last restart. A link works once.</p>
<h2>If there is no administrator yet</h2>
<ul>
<li>Run <code>bin/cloudlet admin setup-link</code> on the host to get a new link.</li>
<li>Or run <code>bin/cloudlet admin create</code> there.</li>
</ul>
<h2>If you are the administrator</h2>
<p><code>bin/cloudlet admin key --username NAME</code> on the host shows your API key. The
<a href="/api/docs">API reference</a> lists all calls.</p>
</main>`,
);
