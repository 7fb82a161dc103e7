/** Host names of requests, and lists in the settings. */
import type { Config } from './config.ts';

/** The entries of a setting that is a list; empty: none. */
export function listIn(text: string): string[] {
  return text.split(',').filter((entry) => entry !== '');
}

/** Names of the S3 endpoint and of databases that answer over HTTP, in private networks of accounts. */
const PRIVATE_S3 = 's3.internal';
export const PRIVATE_NAMES: readonly string[] = [PRIVATE_S3, `.${PRIVATE_S3}`, '.db.internal'];

/** Public host names under which a bucket's name is the first label. */
export function s3Domains({ s3Domain }: Pick<Config, 's3Domain'>): string[] {
  return listIn(s3Domain);
}

/** All domains whose subdomains are bucket names. */
export function bucketDomains(config: Pick<Config, 's3Domain'>): string[] {
  return [...s3Domains(config), PRIVATE_S3];
}

/** Names in `Host` of requests to the S3 endpoint; `.example.org`: every name below it. */
export function s3HostNames(config: Pick<Config, 's3Domain'>): string[] {
  return s3Domains(config).flatMap((domain) => [domain, `.${domain}`]);
}
