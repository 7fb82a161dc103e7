/** Entry points for callers who know only the address: a page for people, an index for programs. */
import type { Config } from '../../config/config.ts';
import { type Registration, registrationDomains, registrationOf } from '../../config/registrations.ts';
import { namedObject, Type } from '../../platform/json/json-schema.ts';
import { VERSION } from '../../platform/version.ts';
import type { ConsoleFiles } from '../console-files.ts';
import { type OpenApiDocument, openApi } from '../docs/openapi.ts';
import { referenceHeaders, referencePage } from '../docs/reference-page.ts';
import { varyOn } from '../origins.ts';
import { escapeHtml, PAGE_ICON, PAGE_STYLE, sendPage } from '../page.ts';
import { defineRoute, type Route, type RouteInput } from '../route.ts';

const Index = namedObject('ApiIndex', {
  name: Type.Literal('Cloudlet'),
  version: Type.String(),
  docs: Type.String({ description: 'Documentation for people' }),
  openapi: Type.String({ description: 'OpenAPI document for programs' }),
  status: Type.String(),
  register: Type.String({ description: 'Path for registering an account, with POST' }),
  registration: Type.Enum(['open', 'invitation', 'domain', 'closed'], {
    description:
      'invitation: anyone with an invitation registers; domain: anyone who gets mail at an address of ' +
      'registration_domains; closed: only administrators create accounts',
  }),
  registration_domains: Type.Array(Type.String()),
  mail: Type.Boolean({ description: 'Whether this cloud sends mail, such as for a forgotten password' }),
  needs_setup: Type.Boolean({ description: 'Whether the cloud still has no administrator' }),
});

const LINKS = {
  name: 'Cloudlet',
  version: VERSION,
  docs: '/api/docs',
  openapi: '/api/openapi.json',
  status: '/api/system/status',
  register: '/api/register',
};

const STYLE = `${PAGE_STYLE}
main { max-width: 52rem; } .notice { border-left: 4px solid var(--accent); background: var(--raised); padding: .6rem 1rem; }
li { margin: .3rem 0; }
`;

const JSON_HEADER = "-H 'Content-Type: application/json'";
const KEY_HEADER = '-H "X-API-Key: $KEY"';

export interface IndexRoutesDeps {
  readonly config: Pick<Config, 'registration' | 'host' | 'publicUrl' | 'smtpUrl'>;
  readonly needsSetup: () => Promise<boolean>;
  /** URL of this cloud, `http://host:port`. */
  readonly apiUrl: () => string;
  readonly pages: Pick<ConsoleFiles, 'isBuilt' | 'sendPage'>;
}

export function indexRoutes(deps: IndexRoutesDeps): Route[] {
  const common = { method: 'GET', tag: 'system', permission: 'public', responses: { 200: Index } } as const;
  return [
    defineRoute({
      ...common,
      path: '/',
      name: 'getStart',
      summary: 'The console for browsers, else the same as /api',
      handler: (input) => {
        const { request, reply } = input;
        if (!deps.pages.isBuilt || request.headers.accept?.includes('text/html') !== true)
          return answer(deps, input);
        deps.pages.sendPage(request, reply);
        return undefined;
      },
    }),
    defineRoute({
      ...common,
      path: '/api',
      name: 'getIndex',
      summary: 'Entry point: JSON, or a page for browsers',
      handler: (input) => answer(deps, input),
    }),
  ];
}

type Input = Pick<RouteInput<unknown, unknown, unknown>, 'request' | 'reply'>;

async function answer({ config, needsSetup, apiUrl }: IndexRoutesDeps, { request, reply }: Input) {
  const registration = registrationOf(config);
  const { responseHeaders, headers } = request;
  const index = {
    ...LINKS,
    registration,
    registration_domains: [...registrationDomains(config)],
    mail: config.smtpUrl !== '',
    needs_setup: await needsSetup(),
  };
  varyOn(responseHeaders, 'Accept');
  if (headers.accept?.includes('text/html') !== true) return index;
  const html = indexPage({ url: apiUrl(), registration, needsSetup: index.needs_setup });
  sendPage(request, reply, { html, status: 200 });
  return undefined;
}

interface IndexFacts {
  /** URL of this cloud, `http://host:port`. */
  readonly url: string;
  /** True while there is no administrator. */
  readonly needsSetup: boolean;
  readonly registration: Registration;
}

/** A complete HTML page without script: an introduction and the first commands. */
function indexPage({ url, needsSetup, registration }: IndexFacts): string {
  const notice = needsSetup
    ? `<p class="notice">There is no administrator yet. Run <code>bin/cloudlet admin setup-link</code>
on the machine itself: it prints a link to create one.</p>`
    : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cloudlet</title>
${PAGE_ICON}
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Cloudlet</h1>
<p class="soft">Version ${escapeHtml(VERSION)}. A small cloud: accounts, object storage, virtual machines, databases, billing and webhooks.
It is used over HTTP, or in the console at <a href="/">/</a>. (Where that is missing, <code>npm start</code> builds it.)</p>
${notice}
<ul>
<li><a href="/api/docs">The API</a>, each call with an example</li>
<li><a href="/api/openapi.json">OpenAPI 3.1 document</a>, for programs</li>
<li><a href="/api/system/status">Status of this cloud</a></li>
</ul>
<h2>First commands</h2>
${REGISTER[registration]}
<pre>${escapeHtml(registration === 'open' ? register(url) : KEY_LINE)}</pre>
<p>Make a bucket, put a file into it, and list it.</p>
<pre>${escapeHtml(firstFile(url))}</pre>
</main>
</body>
</html>
`;
}

const REGISTER = {
  open: '<p>Register. The response contains your API key.</p>',
  invitation: '<p>Registration is by invitation: ask the administrator for one.</p>',
  domain: '<p>Registration requires an e-mail address at an allowed domain: sign up in the console.</p>',
  closed: '<p>Registration is closed: ask the administrator for an account.</p>',
};
const KEY_LINE = 'KEY=clk_…   # your API key';

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

const DocumentQuery = Type.Object({
  async: Type.Optional(
    Type.Boolean({ description: 'Describe `Prefer: respond-async` and its 202 at each call that takes it' }),
  ),
});

export interface DocumentDeps {
  /** URL that the caller used. */
  readonly apiUrl: () => string;
  /** Path of the script that shows the API reference; undefined: the console is not built. */
  readonly library: string | undefined;
}

/** `routes`: all other routes; the two returned ones are documented too. */
export function documentRoutes(routes: readonly Route[], { apiUrl, library }: DocumentDeps): Route[] {
  const common = { method: 'GET', tag: 'system', permission: 'public' } as const;
  const documents = new Map<boolean, OpenApiDocument>();
  const page = referencePage(library);
  const own: Route[] = [
    defineRoute({
      ...common,
      path: '/api/openapi.json',
      name: 'getOpenApi',
      summary: 'This API as an OpenAPI 3.1 document',
      query: DocumentQuery,
      responses: { 200: Type.Record(Type.String(), Type.Unknown()) },
      handler: ({ query: { async: hasAsync = false } }) => {
        const document =
          documents.get(hasAsync) ?? openApi([...routes, ...own], { version: VERSION, hasAsync });
        documents.set(hasAsync, document);
        return { ...document, servers: [{ url: apiUrl() }] };
      },
    }),
    defineRoute({
      ...common,
      path: '/api/docs',
      name: 'getDocs',
      summary: 'This API as a web page',
      responses: { 200: Type.String() },
      produces: 'html',
      handler: ({ request }) => {
        Object.assign(request.responseHeaders, referenceHeaders(page));
        return page;
      },
    }),
  ];
  return own;
}
