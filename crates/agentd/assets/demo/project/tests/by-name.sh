said=$(sh bin/greet Ada)
[ "$said" = "Hello, Ada!" ] || { echo "it said: $said"; exit 1; }
