/** The page behind the one-use set-up link: makes the first administrator and shows the key. */
import { PAGE_STYLE } from './page.ts';

const STYLE = `${PAGE_STYLE}
main { max-width: 26rem; } label { display: block; margin-top: 1rem; font-weight: 600; }
input { width: 100%; padding: .55rem .7rem; font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 6px; }
button { margin-top: 1.5rem; width: 100%; padding: .65rem; font: inherit; font-weight: 600; color: #fff; background: #0b57d0; border: 0; border-radius: 6px; cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
[role=alert] { color: light-dark(#b3261e, #ffb4ab); min-height: 1.5rem; white-space: pre-line; }
`;

const SCRIPT = `
const form = document.querySelector('form');
const message = document.querySelector('[role=alert]');
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  message.textContent = '';
  const body = Object.fromEntries(new FormData(form));
  body.token = new URLSearchParams(location.search).get('token') ?? '';
  let answer;
  try {
    const response = await fetch('/api/setup', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    answer = await response.json();
    if (!response.ok) {
      message.textContent = (answer.errors ?? []).map((e) => e.field + ' ' + e.message).join('\\n') || answer.detail;
      return;
    }
  } catch {
    message.textContent = 'Cloudlet does not answer. Is it still running?';
    return;
  }
  form.hidden = true;
  document.querySelector('#key').textContent = answer.api_key;
  document.querySelector('#done').hidden = false;
  document.querySelector('#done h1').focus();
});
`;

export const SETUP_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Set up Cloudlet</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<form>
<h1>Set up Cloudlet</h1>
<p class="soft">You are about to become the administrator. This page works once.</p>
<label for="username">User name</label>
<input id="username" name="username" autocomplete="username" required minlength="3" maxlength="64">
<label for="email">E-mail</label>
<input id="email" name="email" type="email" autocomplete="email" required>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required minlength="8" maxlength="256">
<p role="alert"></p>
<button>Create administrator</button>
</form>
<section id="done" hidden>
<h1 tabindex="-1">You are the administrator</h1>
<p>This is your API key. You find it again at <code>GET /api/account</code>.</p>
<pre id="key"></pre>
<p><a href="/api/docs">Read the API docs</a></p>
</section>
</main>
<script>${SCRIPT}</script>
</body>
</html>
`;
