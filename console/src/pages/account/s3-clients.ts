/** Configuration of S3 clients, as in their own documentation. */
import { shellWord } from '../../parts/say.ts';

export const S3_CLIENTS = [
  ...(['aws', 'rclone', 'restic', 'boto3', 'js', 's3cmd', 's3fs'] as const),
  ...(['terraform', 'litestream', 'pgbackrest'] as const),
] as const;

export type S3Client = (typeof S3_CLIENTS)[number];

export interface S3SetUp {
  /** URL without a slash at the end. */
  readonly endpoint: string;
  readonly id: string;
  readonly secret: string;
  readonly bucket: string;
  /** Prefix in the bucket: empty, or ends with `/`. */
  readonly prefix: string;
}

/** A key that the reader must fill in. */
export const NO_KEY = { id: 'ACCESS_KEY_ID', secret: 'SECRET_ACCESS_KEY', bucket: 'BUCKET', prefix: '' };

const REGION = 'us-east-1';

/** Lines to paste, in the language of the client. */
export function snippetOf(client: S3Client, setUp: S3SetUp): string {
  return SNIPPETS[client](setUp).join('\n');
}

const environment = ({ id, secret }: S3SetUp) => [
  `export AWS_ACCESS_KEY_ID=${id}`,
  `export AWS_SECRET_ACCESS_KEY=${secret}`,
  `export AWS_DEFAULT_REGION=${REGION}`,
];

/** `photos/2026` */
const pathOf = ({ bucket, prefix }: S3SetUp) => `${bucket}/${prefix}`.replace(/\/$/, '');
const withoutSlash = ({ prefix }: S3SetUp) => prefix.replace(/\/$/, '');

const SNIPPETS: Readonly<Record<S3Client, (setUp: S3SetUp) => readonly string[]>> = {
  aws: (setUp) => [
    ...environment(setUp),
    `aws --endpoint-url ${setUp.endpoint} s3 ls ${shellWord(`s3://${setUp.bucket}/${setUp.prefix}`)}`,
  ],
  rclone: (setUp) => [
    '# ~/.config/rclone/rclone.conf',
    '[cloudlet]',
    'type = s3',
    'provider = Other',
    `endpoint = ${setUp.endpoint}`,
    `region = ${REGION}`,
    `access_key_id = ${setUp.id}`,
    `secret_access_key = ${setUp.secret}`,
    'no_check_bucket = true',
    '',
    `# rclone ls ${shellWord(`cloudlet:${pathOf(setUp)}`)}`,
  ],
  restic: (setUp) => [
    ...environment(setUp),
    `export RESTIC_REPOSITORY=${shellWord(`s3:${setUp.endpoint}/${pathOf(setUp)}`)}`,
    'restic init',
    'restic backup ~/Documents',
  ],
  boto3: (setUp) => [
    'import boto3',
    'from botocore.config import Config',
    '',
    's3 = boto3.client(',
    "    's3',",
    `    endpoint_url='${setUp.endpoint}',`,
    `    region_name='${REGION}',`,
    `    aws_access_key_id='${setUp.id}',`,
    `    aws_secret_access_key='${setUp.secret}',`,
    "    config=Config(s3={'addressing_style': 'path'}),",
    ')',
    `s3.list_objects_v2(Bucket=${literal(setUp.bucket)}, Prefix=${literal(setUp.prefix)})`,
  ],
  js: (setUp) => [
    "import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';",
    '',
    'const s3 = new S3Client({',
    `  endpoint: '${setUp.endpoint}',`,
    `  region: '${REGION}',`,
    '  forcePathStyle: true,',
    `  credentials: { accessKeyId: '${setUp.id}', secretAccessKey: '${setUp.secret}' },`,
    '});',
    `await s3.send(new ListObjectsV2Command({ Bucket: ${literal(setUp.bucket)}, Prefix: ${literal(setUp.prefix)} }));`,
  ],
  s3cmd: (setUp) => [
    '# ~/.s3cfg',
    '[default]',
    `access_key = ${setUp.id}`,
    `secret_key = ${setUp.secret}`,
    `host_base = ${hostOf(setUp)}`,
    `host_bucket = ${hostOf(setUp)}`,
    `use_https = ${setUp.endpoint.startsWith('https:') ? 'True' : 'False'}`,
    `bucket_location = ${REGION}`,
    '',
    `# s3cmd ls ${shellWord(`s3://${setUp.bucket}/${setUp.prefix}`)}`,
  ],
  s3fs: (setUp) => [
    `echo ${setUp.id}:${setUp.secret} > ~/.passwd-cloudlet`,
    'chmod 600 ~/.passwd-cloudlet',
    'mkdir -p ~/cloudlet',
    `s3fs ${shellWord(setUp.prefix === '' ? setUp.bucket : `${setUp.bucket}:/${withoutSlash(setUp)}`)} ~/cloudlet \\`,
    `  -o url=${setUp.endpoint} -o use_path_request_style -o endpoint=${REGION} \\`,
    '  -o passwd_file=$HOME/.passwd-cloudlet',
  ],
  terraform: (setUp) => [
    'terraform {',
    '  backend "s3" {',
    `    bucket       = ${terraformText(setUp.bucket)}`,
    `    key          = ${terraformText(`${setUp.prefix}terraform.tfstate`)}`,
    `    region       = "${REGION}"`,
    `    endpoints    = { s3 = "${setUp.endpoint}" }`,
    `    access_key   = "${setUp.id}"`,
    `    secret_key   = "${setUp.secret}"`,
    '    use_lockfile = true',
    '    use_path_style              = true',
    '    skip_credentials_validation = true',
    '    skip_metadata_api_check     = true',
    '    skip_region_validation      = true',
    '    skip_requesting_account_id  = true',
    '  }',
    '}',
  ],
  litestream: (setUp) => [
    '# /etc/litestream.yml',
    'dbs:',
    '  - path: /var/lib/app/app.db',
    '    replicas:',
    '      - type: s3',
    `        endpoint: ${setUp.endpoint}`,
    `        region: ${REGION}`,
    `        bucket: ${literal(setUp.bucket)}`,
    `        path: ${literal(`${setUp.prefix}app`)}`,
    '        force-path-style: true',
    `        access-key-id: ${setUp.id}`,
    `        secret-access-key: ${setUp.secret}`,
  ],
  pgbackrest: (setUp) => [
    '# /etc/pgbackrest/pgbackrest.conf',
    '[global]',
    'repo1-type=s3',
    `repo1-path=/${setUp.prefix}pgbackrest`,
    `repo1-s3-bucket=${setUp.bucket}`,
    `repo1-s3-endpoint=${hostOf(setUp).replace(/:\d+$/, '')}`,
    `repo1-storage-port=${portOf(setUp)}`,
    `repo1-s3-region=${REGION}`,
    'repo1-s3-uri-style=path',
    `repo1-s3-key=${setUp.id}`,
    `repo1-s3-key-secret=${setUp.secret}`,
  ],
};

function hostOf({ endpoint }: S3SetUp): string {
  return endpoint.replace(/^https?:\/\//, '');
}

function portOf(setUp: S3SetUp): string {
  return /:(\d+)$/.exec(hostOf(setUp))?.[1] ?? '443';
}

/** A double-quoted string, valid in Python, JavaScript and YAML. */
function literal(value: string): string {
  return JSON.stringify(value);
}

/** A string in Terraform, which interprets `${`. */
function terraformText(value: string): string {
  return literal(value).replaceAll(/\$(?=\{)/g, () => '$$');
}
