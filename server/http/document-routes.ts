/** The API describing itself. */
import { Type } from '../platform/json-schema.ts';
import { VERSION } from '../platform/version.ts';
import { docsPage } from './docs-page.ts';
import { inlineOpenApi, type OpenApiDocument, openApi } from './openapi.ts';
import { pageHeaders } from './page.ts';
import { defineRoute, type Route } from './route.ts';

/** `routes`: all others; these two are documented beside them. */
export function documentRoutes(routes: readonly Route[]): Route[] {
  const common = { method: 'GET', tag: 'system', permission: 'public' } as const;
  let document: OpenApiDocument | undefined;
  let page: string | undefined;
  const own: Route[] = [
    defineRoute({
      ...common,
      path: '/api/openapi.json',
      name: 'getOpenApi',
      summary: 'This API as OpenAPI 3.1',
      responses: { 200: Type.Record(Type.String(), Type.Unknown()) },
      handler: () => {
        document ??= openApi([...routes, ...own], VERSION);
        return document;
      },
    }),
    defineRoute({
      ...common,
      path: '/api/docs',
      name: 'getDocs',
      summary: 'This API as a page',
      responses: { 200: Type.String() },
      produces: 'html',
      handler: ({ request }) => {
        page ??= docsPage(inlineOpenApi([...routes, ...own], VERSION));
        Object.assign(request.responseHeaders, pageHeaders(page));
        return page;
      },
    }),
  ];
  return own;
}
