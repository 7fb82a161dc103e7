/**
 * What is at `/api`, and at `/` while the console is not built: what this is, where to go on, and the first
 * commands to type.
 */
import { escapeHtml, PAGE_STYLE } from './page.ts';

const STYLE = `${PAGE_STYLE}
main { max-width: 52rem; } .notice { border-left: 4px solid var(--accent); background: var(--raised); padding: .6rem 1rem; }
li { margin: .3rem 0; }
`;

export interface IndexFacts {
  readonly version: string;
  /** Where this cloud is reached, `http://host:port`. */
  readonly url: string;
  /** True while there is no administrator. */
  readonly needsSetup: boolean;
}

/** A whole HTML page, without script. */
export function indexPage({ version, url, needsSetup }: IndexFacts): string {
  const notice = needsSetup
    ? `<p class="notice">There is no administrator yet. Run <code>bin/cloudlet admin setup-link</code>
on the machine itself: it prints a link that makes one.</p>`
    : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cloudlet</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Cloudlet</h1>
<p class="soft">Version ${escapeHtml(version)}. A small cloud: accounts, object storage, virtual machines, billing and webhooks.
It is used over HTTP, or in the console at <a href="/">/</a>. (Where that is missing, <code>npm start</code> builds it.)</p>
${notice}
<ul>
<li><a href="/api/docs">The API</a>, each call with an example</li>
<li><a href="/api/openapi.json">The same for programs</a>, as OpenAPI 3.1</li>
<li><a href="/api/system/status">How this cloud is doing</a></li>
</ul>
<h2>First commands</h2>
<p>Register. The response holds your API key.</p>
<pre>${escapeHtml(register(url))}</pre>
<p>Make a bucket, put a file into it, and list it.</p>
<pre>${escapeHtml(firstFile(url))}</pre>
</main>
</body>
</html>
`;
}

const JSON_HEADER = "-H 'Content-Type: application/json'";
const KEY_HEADER = '-H "X-API-Key: $KEY"';

function register(url: string): string {
  return [
    `curl ${url}/api/register ${JSON_HEADER} \\`,
    `  -d '{"username":"ada","email":"ada@example.com","password":"correct horse"}'`,
    'KEY=clk_…   # the api_key of the response',
  ].join('\n');
}

function firstFile(url: string): string {
  const buckets = `${url}/api/buckets`;
  return [
    `curl ${KEY_HEADER} ${buckets} \\\n  ${JSON_HEADER} -d '{"name":"photos"}'`,
    'echo hello > hello.txt',
    `curl ${KEY_HEADER} ${buckets}/photos/upload -F file=@hello.txt`,
    `curl ${KEY_HEADER} ${buckets}/photos/files`,
  ].join('\n');
}
