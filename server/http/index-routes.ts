/** Where one begins who only knows the address: a page for people, an index for programs. */
import { namedObject, Type } from '../platform/json-schema.ts';
import { VERSION } from '../platform/version.ts';
import type { ConsoleFiles } from './console-files.ts';
import { varyOn } from './cors.ts';
import { indexPage } from './index-page.ts';
import { sendPage } from './page.ts';
import { defineRoute, type Route, type RouteInput } from './route.ts';

const Index = namedObject('ApiIndex', {
  name: Type.Literal('Cloudlet'),
  version: Type.String(),
  docs: Type.String({ description: 'For people' }),
  openapi: Type.String({ description: 'For programs' }),
  status: Type.String(),
  register: Type.String({ description: 'Where accounts are made, with POST' }),
  needs_setup: Type.Boolean({ description: 'true while there is no administrator' }),
});

const PLACES = {
  name: 'Cloudlet',
  version: VERSION,
  docs: '/api/docs',
  openapi: '/api/openapi.json',
  status: '/api/system/status',
  register: '/api/register',
};

export interface IndexRoutesDeps {
  readonly needsSetup: () => Promise<boolean>;
  /** Where a proxy in front of this cloud is reached; empty: there is none. */
  readonly publicUrl: string;
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
      summary: 'Where to go on: JSON, or a page for browsers',
      handler: (input) => answer(deps, input),
    }),
  ];
}

type Input = Pick<RouteInput<unknown, unknown, unknown>, 'request' | 'reply'>;

async function answer({ needsSetup, publicUrl }: IndexRoutesDeps, { request, reply }: Input) {
  const { responseHeaders, headers, protocol } = request;
  const index = { ...PLACES, needs_setup: await needsSetup() };
  varyOn(responseHeaders, 'Accept');
  if (headers.accept?.includes('text/html') !== true) return index;
  const url = publicUrl || `${protocol}://${headers.host ?? 'localhost'}`;
  sendPage(request, reply, indexPage({ version: VERSION, url, needsSetup: index.needs_setup }));
  return undefined;
}
