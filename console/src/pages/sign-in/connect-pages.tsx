/**
 * Lets a person sign a program in: one on this computer, whose request is in the URL's fragment
 * (after #), or one on another computer, by the code that it shows. Nothing is approved without the
 * button.
 */

import { Badge, Button, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import type { AccessKey, DeviceLogin, NewAccessKey } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Refused, Warning } from '../../parts/forms/warning.tsx';
import { Facts } from '../../parts/tables/facts.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { accountQuery } from '../../queries.ts';
import { linksText } from '../../texts/pages/links-text.ts';
import { text } from '../../texts/text.ts';
import { KEY_TERMS } from '../account/key-terms.ts';
import { SignInLayout } from './sign-in-pages.tsx';

const words = linksText.connect;
const DAY = 86_400;
/** Must match the server: the loopback address as a number, never a name. */
const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):[1-9]\d{0,4}\/callback$/;

interface Request {
  readonly redirect: string;
  readonly challenge: string;
  readonly state: string;
  readonly name: string;
  readonly scopes: AccessKey['scopes'];
  readonly days: string;
}

/** Undefined: the URL is not a valid log-in request. */
function readRequest(): Request | undefined {
  const given = new URLSearchParams(location.hash.slice(1));
  const field = (name: string) => given.get(name) ?? '';
  const scopes = field('scopes').split(' ') as AccessKey['scopes'];
  const request = {
    redirect: field('redirect'),
    challenge: field('challenge'),
    state: field('state'),
    name: field('name'),
    scopes,
    days: field('days'),
  };
  const isWhole = LOOPBACK.test(request.redirect) && request.challenge !== '' && request.state !== '';
  return isWhole && request.name !== '' ? request : undefined;
}

/** The URL of the program, with the result. */
function wayBack({ redirect, state }: Request, outcome: Readonly<Record<string, string>>): string {
  return `${redirect}?${new URLSearchParams({ ...outcome, state })}`;
}

export function ConnectPage() {
  const [request] = useState(readRequest);
  const outcome = location.hash.slice(1);
  if (outcome === 'done' || outcome === 'failed') return <Outcome how={outcome} />;
  if (request === undefined) {
    return (
      <SignInLayout title={words.title} lead={words.incomplete}>
        <AnchorLink to="/device">{words.haveCode}</AnchorLink>
      </SignInLayout>
    );
  }
  return <Local request={request} />;
}

function Local({ request }: { request: Request }) {
  const { name, scopes, challenge, redirect } = request;
  const approve = useMutation({
    mutationFn: (term: Term) =>
      cloud.approveLogin({
        redirect_uri: redirect,
        code_challenge: challenge,
        code_challenge_method: 'S256',
        name,
        scopes,
        ...term,
      }),
    meta: { shown: true },
    // Replaced, so that going back does not lead to a finished request.
    onSuccess: ({ code }) => location.replace(wayBack(request, { code })),
  });
  return (
    <SignInLayout title={words.title} lead={words.lead}>
      <Decision
        asked={{ name, scopes }}
        days={request.days}
        isBusy={approve.isPending || approve.isSuccess}
        onAllow={(term) => approve.mutate(term)}
        onRefuse={() => location.replace(wayBack(request, { error: 'access_denied' }))}
      >
        <Refused error={approve.error} />
      </Decision>
    </SignInLayout>
  );
}

export function DevicePage() {
  const form = useCloudForm({
    values: { user_code: '' },
    send: (values) => cloud.findDeviceLogin(values),
  });
  const [outcome, setOutcome] = useState<'done' | 'refused'>();
  if (outcome !== undefined) return <Outcome how={outcome} />;
  if (form.made !== undefined) {
    return (
      <SignInLayout title={words.title} lead={words.lead}>
        <Remote login={form.made} onDecided={setOutcome} />
      </SignInLayout>
    );
  }
  return (
    <SignInLayout title={words.codeTitle} lead={words.codeLead}>
      <form onSubmit={form.submit}>
        <Stack>
          <TextInput
            label={words.code}
            placeholder="BCDF-GHJK"
            autoComplete="off"
            autoCapitalize="characters"
            spellCheck={false}
            required
            withAsterisk={false}
            data-autofocus
            {...form.text('user_code')}
          />
          <Refused {...form.refusal} />
          <Button type="submit" loading={form.isBusy}>
            {words.go}
          </Button>
        </Stack>
      </form>
    </SignInLayout>
  );
}

function Remote({ login, onDecided }: { login: DeviceLogin; onDecided: (how: 'done' | 'refused') => void }) {
  const { user_code, address } = login;
  const decide = useMutation({
    mutationFn: (decision: { approve: boolean } & Term) =>
      cloud.decideDeviceLogin({ user_code, ...decision }),
    meta: { shown: true },
    onSuccess: (_, { approve }) => onDecided(approve ? 'done' : 'refused'),
  });
  return (
    <Decision
      asked={login}
      address={address}
      days="90"
      isBusy={decide.isPending}
      onAllow={(term) => decide.mutate({ approve: true, ...term })}
      onRefuse={() => decide.mutate({ approve: false })}
    >
      <Refused error={decide.error} />
    </Decision>
  );
}

function Outcome({ how }: { how: 'done' | 'failed' | 'refused' }) {
  return (
    <SignInLayout title={words[how]} lead={words.close}>
      <AnchorLink to="/account">{words.keys}</AnchorLink>
    </SignInLayout>
  );
}

type Term = Pick<NewAccessKey, 'expires_in'>;

interface DecisionProps {
  readonly asked: Pick<AccessKey, 'name' | 'scopes'>;
  /** The program's, which may be on any host. */
  readonly address?: string;
  /** Name proposed by the program. */
  readonly days: string;
  readonly isBusy: boolean;
  readonly onAllow: (term: Term) => void;
  readonly onRefuse: () => void;
  /** The cloud's error. */
  readonly children: ReactNode;
}

function Decision({ asked, address, days, isBusy, onAllow, onRefuse, children }: DecisionProps) {
  const { data: account } = useQuery(accountQuery);
  const proposed = String(Number(days) * DAY);
  const terms = KEY_TERMS.some(({ value }) => value === proposed)
    ? KEY_TERMS
    : [
        ...KEY_TERMS,
        ...(Number(days) > 0 ? [{ value: proposed, label: text.account.days(Number(days)) }] : []),
      ];
  const [term, setTerm] = useState(
    terms.some(({ value }) => value === proposed) ? proposed : String(90 * DAY),
  );
  const isReady = useCalm();
  const isAll = asked.scopes.includes('*');
  const rights = asked.scopes.map((scope) => (
    <Badge key={scope} variant="light" color="gray">
      {scope}
    </Badge>
  ));
  const facts = [
    { name: words.program, value: asked.name },
    ...(address === undefined ? [] : [{ name: words.address, value: address }]),
    { name: words.account, value: account?.username ?? '' },
    { name: text.account.scopes, value: <Group gap={4}>{rights}</Group> },
  ];
  return (
    <Stack>
      <Facts facts={facts} isWide />
      {isAll && <Text size="sm">{account?.is_admin === true ? words.allAdmin : words.all}</Text>}
      <Select
        label={words.term}
        data={terms}
        value={term}
        allowDeselect={false}
        onChange={(value) => setTerm(value ?? term)}
      />
      <Warning>{address === undefined ? words.sureLocal : words.sureRemote}</Warning>
      {children}
      <Group justify="flex-end">
        <Button variant="default" disabled={isBusy} onClick={onRefuse}>
          {words.refuse}
        </Button>
        <Button
          loading={isBusy}
          disabled={!isReady}
          onClick={() => onAllow(term === '' ? {} : { expires_in: Number(term) })}
        >
          {words.allow}
        </Button>
      </Group>
    </Stack>
  );
}

const CALM_MS = 1000;

/**
 * True after the page was visible for a moment: another page could open this one under a double
 * click.
 */
function useCalm(): boolean {
  const [isCalm, setCalm] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = () => {
      clearTimeout(timer);
      setCalm(false);
      if (document.visibilityState === 'visible') timer = setTimeout(() => setCalm(true), CALM_MS);
    };
    wait();
    window.addEventListener('focus', wait);
    document.addEventListener('visibilitychange', wait);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('focus', wait);
      document.removeEventListener('visibilitychange', wait);
    };
  }, []);
  return isCalm;
}
