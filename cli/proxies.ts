/**
 * Proxies from the environment: HTTPS_PROXY, HTTP_PROXY, NO_PROXY, in either case, like curl. A
 * cloud on this computer is always reached directly.
 */
import http from 'node:http';
import { proxyVariables } from './environment.ts';
import { UsageError } from './failures.ts';

/** Whether requests to that URL go through a proxy. */
export function isProxied(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  const { https, http, except } = proxyVariables();
  if ((protocol === 'https:' ? https : http) === undefined || isLoopback(hostname)) return false;
  return !except.some((name) => name === '*' || hostname === name || hostname.endsWith(`.${name}`));
}

/**
 * Makes `fetch` and default agents use the proxies. Throws UsageError if this Node cannot, and the
 * URL needs one.
 */
export function goThroughProxies(url: string): void {
  if (!isProxied(url)) return;
  // Missing before Node 24.14 and 25.4.
  if (typeof http.setGlobalProxyFromEnv !== 'function') {
    throw new UsageError(
      'HTTPS_PROXY is set, but this version of Node cannot use a proxy',
      'Install Node 26, or exclude the cloud with NO_PROXY',
    );
  }
  http.setGlobalProxyFromEnv(proxyEnvironment());
}

/** For agents. */
export function proxyEnvironment(): Record<string, string> {
  const { https, http, except } = proxyVariables();
  return {
    ...(https !== undefined && { HTTPS_PROXY: https }),
    ...(http !== undefined && { HTTP_PROXY: http }),
    // Node matches subdomains if the name begins with a dot.
    NO_PROXY: [
      'localhost',
      '127.0.0.1',
      '::1',
      ...except.flatMap((name) => (name === '*' ? name : [name, `.${name}`])),
    ].join(','),
  };
}

/** `text`: a host, with or without a port and a path. */
export function isLoopback(text: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::|\/|$)/i.test(text);
}
