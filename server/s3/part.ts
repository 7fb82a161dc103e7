/** Builds S3: its edge, and its calls of the JSON API. */
import type { AccountDirectory } from '../accounts/directory.ts';
import type { Authenticator } from '../accounts/sign-in/authenticator.ts';
import type { Config } from '../config/config.ts';
import { bucketDomains, s3Domains } from '../config/host-names.ts';
import { S3Edge, type S3EdgeDeps } from './s3-edge.ts';
import { type S3RoutesDeps, s3Routes } from './s3-routes.ts';

export type S3Sources = Pick<S3EdgeDeps, 'storage' | 'keys' | 'accounts'>;

interface S3Deps extends Pick<S3RoutesDeps, 'accessKeys' | 'clock' | 'dataUrl'> {
  readonly storage: S3EdgeDeps['storage'] &
    Omit<S3RoutesDeps, 'accessKeys' | 'accounts' | 'clock' | 'dataUrl' | 'domains' | 'keyOf'>;
  readonly authenticator: Authenticator;
  readonly directory: AccountDirectory;
}

/** The edge itself is created in cloud/, with the other edges. */
export function s3Part(config: Config, deps: S3Deps) {
  const { storage, authenticator, directory: accounts, accessKeys, clock, dataUrl } = deps;
  const keyOf = (id: string) => authenticator.s3KeyOf(id);
  const own = { accessKeys, accounts, clock, dataUrl, keyOf, domains: s3Domains(config) };
  const sources: S3Sources = { storage, keys: authenticator, accounts };
  return { sources, routes: s3Routes({ ...storage, ...own }) };
}

export function s3Edge(
  config: Config,
  deps: Omit<S3EdgeDeps, 'domains' | 'oldSignatures' | 'isPrivate'>,
): S3Edge {
  return new S3Edge({
    ...deps,
    domains: bucketDomains(config),
    oldSignatures: config.s3OldSignatures === 'on',
    isPrivate: (request) => config.s3InsecureKeys === 'true' || deps.proxies.isPrivate(request),
  });
}
