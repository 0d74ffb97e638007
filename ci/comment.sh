#!/usr/bin/env bash
# Creates or updates one comment on a pull request. The first line of the text is the marker by
# which it is found again.
#
# GITHUB_REPOSITORY  owner and name of the repository
# MCPTEST_PR         number of the pull request
# MCPTEST_OUT        folder of the reports, with comment.md
# GH_TOKEN           token of `gh`, with the permission `pull-requests: write`
set -euo pipefail

repository=${GITHUB_REPOSITORY:?owner and name}
number=${MCPTEST_PR:?the number of the pull request}
text=${MCPTEST_OUT:?the folder of the reports}/comment.md

if [ ! -s "$text" ]; then
  echo "no comment: there is no report"
  exit 0
fi
marker=$(head -n 1 "$text")
case $marker in
  '<!-- '*' -->') ;;
  *)
    echo "$text does not begin with a marker" >&2
    exit 2
    ;;
esac

# Only our own comments can be edited, so comments of people that quote the marker are left alone.
id=$(
  MARKER=$marker gh api --paginate "repos/$repository/issues/$number/comments" \
    --jq '.[] | select(.user.type == "Bot" and (.body | startswith(env.MARKER))) | .id' | head -n 1
)
if [ -n "$id" ]; then
  gh api --silent --method PATCH "repos/$repository/issues/comments/$id" --field "body=@$text"
  echo "updated comment $id"
else
  gh api --silent --method POST "repos/$repository/issues/$number/comments" --field "body=@$text"
  echo "added a comment"
fi
