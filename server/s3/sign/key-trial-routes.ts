/** The test of an access key, over REST. */
import type { AccessKeys } from '../../accounts/keys/access-keys.ts';
import { AccessKeyPath } from '../../accounts/schema.ts';
import type { S3Key } from '../../accounts/sign-in/authenticator.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Clock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { tryKey } from './key-trial.ts';
import { KeyTrialBody, KeyTrialResult } from './key-trial-schema.ts';

export interface KeyTrialRoutesDeps {
  readonly accessKeys: Pick<AccessKeys, 'find'>;
  readonly keyOf: (accessKeyId: string) => Promise<S3Key>;
  /** URL for S3 clients. */
  readonly dataUrl: () => string;
  readonly clock: Clock;
}

export function keyTrialRoutes({ accessKeys, keyOf, dataUrl, clock }: KeyTrialRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/account/access-keys/{id}/test',
      name: 'testAccessKey',
      tag: 'accounts',
      summary: 'Test an access key at the S3 endpoint',
      description:
        'The cloud signs requests with the key and sends them to its own public endpoint, as an S3 client does. ' +
        'Nothing is stored or changed.',
      permission: 'account:write',
      params: AccessKeyPath,
      body: KeyTrialBody,
      responses: { 200: KeyTrialResult },
      errors: ['access_key_not_found'],
      isRepeatable: true,
      changesNothing: true,
      handler: async ({ principal, params, body }) => {
        const { access_key_id: accessKeyId } = await accessKeys.find(principal, params.id);
        const endpoint = dataUrl();
        try {
          const key = await keyOf(accessKeyId);
          return await tryKey({ endpoint, accessKeyId, key, bucket: body.bucket, clock });
        } catch (error) {
          if (!isAppError(error, 'invalid_api_key')) throw error;
          const step = { step: 'signature', ok: false, code: 'InvalidAccessKeyId' };
          return { endpoint, ok: false, steps: [{ ...step, message: 'The key has expired' }] };
        }
      },
    }),
  ];
}
