#!/bin/sh
# Creates the namespace and the search attributes that errand's runs are listed by. Safe to run at each start.
set -eu

: "${TEMPORAL_NAMESPACE:=default}"
: "${RETENTION:=720h}"
namespace=$TEMPORAL_NAMESPACE

temporal operator cluster health
if ! temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1; then
  temporal operator namespace create --namespace "$namespace" --retention "$RETENTION"
fi

# A new namespace becomes known to all parts of the server after some seconds.
attempts=60
until temporal operator search-attribute list --namespace "$namespace" >/dev/null 2>&1; do
  attempts=$((attempts - 1))
  if [ "$attempts" -eq 0 ]; then
    echo "namespace $namespace is not ready after 60 attempts; see the server's log: docker compose logs temporal" >&2
    exit 1
  fi
  sleep 1
done

# One that is there already is left as it is.
temporal operator search-attribute create --namespace "$namespace" \
  --name AgentType --type Keyword \
  --name AgentStatus --type Keyword \
  --name AgentDepth --type Int \
  --name AgentTokens --type Int \
  --name AgentCostUsd --type Double \
  --name AgentWaiting --type Keyword
echo "namespace $namespace is ready"
