/** REST routes that describe the S3 endpoint. */
import { defineRoute, type Route } from '../http/route.ts';
import { namedObject, Type } from '../platform/json/json-schema.ts';

export interface EndpointRoutesDeps {
  /** URL for S3 clients. */
  readonly dataUrl: () => string;
  /** Host names under which a bucket's name is the first label. */
  readonly domains: readonly string[];
}

const REGION = 'us-east-1';

const S3Endpoint = namedObject('S3Endpoint', {
  endpoint: Type.String({ description: 'URL for S3 clients, with path style' }),
  region: Type.String({ description: 'Region that requests are signed for' }),
  domains: Type.Array(Type.String(), {
    description: 'Host names for virtual-host style: the bucket is the first label before one of them',
  }),
});

export function endpointRoutes({ dataUrl, domains }: EndpointRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/s3',
      name: 'getS3Endpoint',
      tag: 'storage',
      summary: 'Read the S3 endpoint',
      permission: 'authenticated',
      responses: { 200: S3Endpoint },
      handler: () => ({ endpoint: dataUrl(), region: REGION, domains: [...domains] }),
    }),
  ];
}
