/** What is said about a path or method that no route has. */
import { didYouMean } from '../config/did-you-mean.ts';
import { AppError } from '../platform/errors.ts';
import type { Route } from './route.ts';

/** `not_found`, with the path that was probably meant; `method_not_allowed` where another method works. */
export function unknownPath(routes: readonly Route[], method: string, url: string): AppError {
  const path = url.split('?', 1)[0] ?? '';
  const allowed = new Set<string>();
  for (const route of routes) {
    if (fill(route.path, path.split('/')) !== path) continue;
    allowed.add(route.method);
    if (route.method === 'GET') allowed.add('HEAD');
  }
  if (allowed.size > 0) {
    const list = [...allowed].join(', ');
    return new AppError('method_not_allowed', `${method} is not allowed here; allowed: ${list}`, {
      headers: { allow: list },
    });
  }
  const meant = meantPath(routes, path);
  const hint = meant === undefined ? 'All calls are at /api/docs' : `Did you mean ${meant}?`;
  return new AppError('not_found', `There is nothing at ${path}`, { hint });
}

/** Empty segments and a version are no part of any path here, and `/api` is part of most. */
function meantPath(routes: readonly Route[], path: string): string | undefined {
  const given = path.split('/').filter((segment) => segment !== '' && !/^v\d$/.test(segment));
  const spellings = [given, given[0] === 'api' ? given.slice(1) : ['api', ...given]];
  for (const segments of spellings) {
    const candidates = routes.flatMap((route) => fill(route.path, ['', ...segments]) ?? []);
    const meant = didYouMean(`/${segments.join('/')}`, candidates);
    if (meant !== undefined) return meant;
  }
  return undefined;
}

/** The route's path with the parameters that `segments` have in their place; undefined for another length. */
function fill(routePath: string, segments: readonly string[]): string | undefined {
  const pattern = routePath.split('/');
  if (pattern.length !== segments.length) return undefined;
  const filled = pattern.map((part, index) => (part.startsWith('{') ? segments[index] : part));
  return filled.slice(1).includes('') ? undefined : filled.join('/');
}

/** Says of a URL whether no route begins like it, so that pages may be shown there: `/api/x` never is. */
export function freePaths(routes: readonly Route[]): (url: string) => boolean {
  const taken = new Set(routes.map(({ path }) => firstSegment(path)).filter((segment) => segment !== ''));
  return (url) => !taken.has(firstSegment(url));
}

function firstSegment(url: string): string {
  return /^\/*([^/?]*)/.exec(url)?.[1] ?? '';
}
